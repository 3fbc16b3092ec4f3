/** Lends a book by hand: `MONGODB_URI=… node dist/lend.js <book> <member>`. */
import { connectMongo } from '@nightporter/mongo';
import { loadConfig, mongodbSettings } from '@nightporter/runtime';
import { openLibrary } from './library.js';

const [bookId, memberId] = process.argv.slice(2);
if (bookId === undefined || memberId === undefined) throw new Error('usage: lend.js <book> <member>');
const { mongodbUri } = loadConfig(mongodbSettings({ defaultDatabase: 'library' }), process.env);
const client = await connectMongo({ uri: mongodbUri });
try {
  await (await openLibrary(client)).lend({ bookId, memberId });
} finally {
  await client.close();
}
