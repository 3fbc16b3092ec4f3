/* global Mongo, print, sleep */
// Run by mongosh in a container that ends: makes the members one replica set and creates the user of the services. Run again, it changes
// nothing but the user's password.
const SET = 'rs0';
const MEMBERS = ['mongo-1:27017', 'mongo-2:27017', 'mongo-3:27017'];
const USER = 'nightporter';
const ALREADY_INITIALIZED = 23;
const TRIES = 60;
const PAUSE_MS = 2_000;

const { MONGO_ROOT_PASSWORD, MONGO_PASSWORD } = process.env;
const credentials = `root:${encodeURIComponent(MONGO_ROOT_PASSWORD)}`;

/** The image's own start begins with a server that is reached from inside only, so the first tries may fail. */
function trying(what, attempt) {
  for (let left = TRIES; ; left -= 1) {
    try {
      return attempt();
    } catch (error) {
      if (left === 0) throw error;
      print(`${what}: ${error.message}; trying again`);
      sleep(PAUSE_MS);
    }
  }
}

function initiate() {
  const first = new Mongo(`mongodb://${credentials}@${MEMBERS[0]}/admin?directConnection=true`).getDB('admin');
  const members = MEMBERS.map((host, index) => ({ _id: index, host }));
  try {
    first.adminCommand({ replSetInitiate: { _id: SET, members } });
  } catch (error) {
    if (error.code !== ALREADY_INITIALIZED) throw error;
  }
}

/** Reads and writes of every service, and what the doctor and the relay ask of the cluster. docs/deploying.md tells of one user per service. */
const ROLES = [
  { role: 'readWriteAnyDatabase', db: 'admin' },
  { role: 'clusterMonitor', db: 'admin' },
  { role: 'read', db: 'local' },
];

function createUser() {
  const admin = new Mongo(`mongodb://${credentials}@${MEMBERS.join(',')}/admin?replicaSet=${SET}`).getDB('admin');
  const isThere = admin.getUser(USER) !== null;
  if (isThere) admin.updateUser(USER, { pwd: MONGO_PASSWORD, roles: ROLES });
  else admin.createUser({ user: USER, pwd: MONGO_PASSWORD, roles: ROLES });
}

trying('initiating the replica set', initiate);
trying('creating the user', createUser);
print(`replica set ${SET} has ${MEMBERS.length} members, and the user ${USER}`);
