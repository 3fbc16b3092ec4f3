import type { MongoClient } from 'mongodb';

export interface Engine {
  readonly engine: 'MongoDB' | 'SecantusDB';
  readonly version: string;
}

/** Which server answers; every measured figure is labelled with it. */
export async function engineOf(client: MongoClient): Promise<Engine> {
  const info = await client.db('admin').command({ buildInfo: 1 });
  const secantusVersion: unknown = info['secantusVersion'];
  if (typeof secantusVersion === 'string') return { engine: 'SecantusDB', version: secantusVersion };
  return { engine: 'MongoDB', version: String(info['version']) };
}
