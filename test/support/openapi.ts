import { Ajv, type ValidateFunction } from 'ajv';

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

interface Media {
  readonly schema: Json;
  readonly example?: Json;
  readonly examples?: Readonly<Record<string, { readonly value: Json }>>;
}

interface Response {
  readonly content?: Readonly<Record<string, Media>>;
  readonly headers?: Readonly<Record<string, unknown>>;
}

interface Operation {
  readonly requestBody?: { readonly content?: Readonly<Record<string, Media>> };
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly responses: Readonly<Record<string, Response>>;
}

interface OpenApi {
  readonly components?: { readonly securitySchemes?: Readonly<Record<string, Json>> };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** Probes and scrapes, which are on no page. */
const FOR_MACHINES = /^\/(livez|readyz|metrics)$/;

/** Headers that callers act on: an answer that has one must say so on the page. */
const TOLD_HEADERS = ['etag', 'location', 'retry-after', 'idempotency-replayed', 'x-request-id'];
/** Of these, what an answer of its status may lack. */
const AT_TIMES = new Set(['idempotency-replayed']);

export interface Answer {
  readonly status: number;
  /** As the header says, with parameters. */
  readonly contentType: string | null;
  readonly body: unknown;
  /** Absent: not compared. */
  readonly headers?: Headers;
}

export interface PublishedApi {
  readonly routes: readonly { readonly name: string; readonly operation: Operation }[];
  /** Throws where an answer is not what the OpenAPI page says: route, status, media type and shape. */
  check(request: { readonly method: string; readonly url: string }, answer: Answer): void;
  readonly securitySchemes: Readonly<Record<string, Json>>;
  /** The examples of what is sent, by route, and what is wrong with them: each body needs one, and it fits the body's schema. */
  requestExamples(): readonly { readonly name: string; readonly example: unknown; readonly wrong: string | null }[];
  /** What is wrong with the examples of the page: each request's body and each answer needs one, and it fits its schema. */
  wrongExamples(): readonly string[];
}

/** The OpenAPI page of an application that is ready: one with the plugin for it, as all of ours have. */
export function publishedApi(app: object): PublishedApi {
  const { components = {}, paths } = (app as { swagger(): unknown }).swagger() as OpenApi;
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
  const compiled = new Map<Json, ValidateFunction>();
  const errorsOf = (schema: Json, value: unknown): string | null => {
    const validate = compiled.get(schema) ?? ajv.compile(withNull(schema) as object);
    compiled.set(schema, validate);
    return validate(value) ? null : ajv.errorsText(validate.errors);
  };
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      pattern: new RegExp(`^${method.toUpperCase()} ${path.replace(/\{[^}]+\}/g, '[^/?]+')}(\\?|$)`),
      operation,
    })),
  );
  const wrongIn = (place: string, media: Media): readonly string[] => {
    const examples = examplesOf(media);
    if (examples.length === 0) return [`${place}: no example`];
    return examples.flatMap((example) => {
      const errors = errorsOf(media.schema, example);
      return errors === null ? [] : [`${place}: ${errors}`];
    });
  };
  return {
    routes,
    securitySchemes: components.securitySchemes ?? {},
    check({ method, url }, { status, contentType, body, headers }) {
      const route = routes.find(({ pattern }) => pattern.test(`${method} ${url}`));
      if (route === undefined) {
        if (status === 404 || status >= 500 || !url.startsWith('/') || FOR_MACHINES.test(url)) return;
        throw new Error(`${method} ${url} answered ${status} and is not on the OpenAPI page`);
      }
      const response =
        route.operation.responses[String(status)] ?? route.operation.responses[`${String(status)[0]!}XX`];
      if (response === undefined) throw new Error(`${route.name} answered ${status}, which is not on the OpenAPI page`);
      if (headers !== undefined) {
        const wrong = wrongHeaders(response, { headers, isExact: status in route.operation.responses });
        if (wrong.length > 0) throw new Error(`${route.name} answered ${status} and its headers: ${wrong.join(', ')}`);
      }
      if (status === 304) return;
      const type = contentType?.split(';', 1)[0] ?? 'nothing';
      const media = response.content?.[type];
      if (media === undefined)
        throw new Error(`${route.name} answered ${status} with ${type}, which is not on the OpenAPI page`);
      const errors = errorsOf(media.schema, body);
      if (errors !== null)
        throw new Error(`${route.name} answered ${status} in another shape than the OpenAPI page says: ${errors}`);
    },
    requestExamples: () =>
      routes.flatMap(({ name, operation: { requestBody } }) =>
        Object.values(requestBody?.content ?? {}).flatMap((media) => {
          const examples = examplesOf(media);
          if (examples.length === 0) return [{ name, example: null, wrong: 'no example' }];
          return examples.map((example) => ({ name, example, wrong: errorsOf(media.schema, example) }));
        }),
      ),
    wrongExamples() {
      return routes.flatMap(({ name, operation: { requestBody = {}, responses } }) => [
        ...Object.entries(requestBody.content ?? {}).flatMap(([type, media]) => wrongIn(`${name} body ${type}`, media)),
        ...Object.entries(responses)
          .filter(([status]) => status !== '304')
          .flatMap(([status, { content = {} }]) =>
            Object.entries(content).flatMap(([type, media]) => wrongIn(`${name} ${status} ${type}`, media)),
          ),
      ]);
    },
  };
}

/** A class of statuses, such as 4XX, may have headers of one of them. */
function wrongHeaders(
  response: Response,
  { headers, isExact }: { headers: Headers; isExact: boolean },
): readonly string[] {
  const told = new Set(Object.keys(response.headers ?? {}).map((name) => name.toLowerCase()));
  return TOLD_HEADERS.flatMap((name) => {
    if (headers.has(name) && !told.has(name)) return [`${name} is not on the OpenAPI page`];
    return isExact && told.has(name) && !headers.has(name) && !AT_TIMES.has(name) ? [`${name} is missing`] : [];
  });
}

function examplesOf({ example, examples = {}, schema }: Media): readonly Json[] {
  const ofSchema = schema as { readonly example?: Json; readonly examples?: readonly Json[] };
  const single = [example, ofSchema.example].filter((one) => one !== undefined);
  return [...single, ...Object.values(examples).map(({ value }) => value), ...(ofSchema.examples ?? [])];
}

/** OpenAPI 3.0 says `nullable` where JSON Schema has a type. */
function withNull(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(withNull);
  if (schema === null || typeof schema !== 'object') return schema;
  const { nullable, ...rest } = schema as { readonly [key: string]: Json };
  const inner = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, withNull(value)]));
  return nullable === true ? { anyOf: [{ type: 'null' }, inner] } : inner;
}
