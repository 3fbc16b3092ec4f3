/* global AbortSignal, fetch */
// Whether the service in this container answers, asked by Node itself, since the image has no other client.
const { PORT } = process.env;
const LIMIT_MS = 4_000;

if (PORT === undefined) throw new Error('PORT is not set: a container must say where its service listens');
const answer = await fetch(`http://127.0.0.1:${PORT}/livez`, { signal: AbortSignal.timeout(LIMIT_MS) });
if (!answer.ok) throw new Error(`/livez answered ${answer.status}`);
