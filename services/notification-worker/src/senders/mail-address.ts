const LOCAL = /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}$/;
const DOMAIN = /^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$/;

/** The address of a recipient: itself where it is one, else a box at `domain`, where there is one and the name can stand in an address. */
export function mailAddressOf(recipient: string, domain: string | null): string | null {
  const at = recipient.lastIndexOf('@');
  if (at > 0) {
    const isAddress = isLocal(recipient.slice(0, at)) && DOMAIN.test(recipient.slice(at + 1));
    return isAddress ? recipient : null;
  }
  return domain !== null && isLocal(recipient) ? `${recipient}@${domain}` : null;
}

function isLocal(name: string): boolean {
  return LOCAL.test(name) && !name.startsWith('.') && !name.endsWith('.') && !name.includes('..');
}
