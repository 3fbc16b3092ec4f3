/**
 * Why a request failed, in the store's or the system's words. The error itself goes no further: the SDK's carry the request with its signature, and the
 * access key that was refused.
 */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const name = error.name === 'Error' ? '' : error.name;
  const text = error.message === '' ? codeOf(error) : error.message;
  const status = statusOf(error);
  return [name, text].filter((part) => part !== '').join(': ') + (status === null ? '' : ` (HTTP ${status})`);
}

/** Where every address of a host was tried in vain, only the code tells why. */
function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

function statusOf(error: Error): number | null {
  const metadata: unknown = '$metadata' in error ? error.$metadata : null;
  if (typeof metadata !== 'object' || metadata === null || !('httpStatusCode' in metadata)) return null;
  return typeof metadata.httpStatusCode === 'number' ? metadata.httpStatusCode : null;
}
