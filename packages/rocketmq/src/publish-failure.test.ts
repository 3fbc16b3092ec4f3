import { describe, expect, it } from 'vitest';
import { classifySendFailure, classifyStartFailure, describeError } from './publish-failure.js';

function coded(code: number, message = 'no'): Error {
  return Object.assign(new Error(message), { code });
}

describe('a failed send', () => {
  it.each<[string, number]>([
    ['BAD_REQUEST', 40000],
    ['ILLEGAL_MESSAGE_TAG', 40004],
    ['ILLEGAL_MESSAGE_KEY', 40005],
    ['ILLEGAL_MESSAGE_GROUP', 40006],
    ['ILLEGAL_MESSAGE_PROPERTY_KEY', 40007],
    ['MESSAGE_CORRUPTED', 40016],
    ['PAYLOAD_TOO_LARGE', 41300],
    ['MESSAGE_BODY_TOO_LARGE', 41301],
    ['MESSAGE_PROPERTIES_TOO_LARGE', 43101],
  ])('with %s is permanent', (_name, code) => {
    expect(classifySendFailure(coded(code))).toEqual({ failure: 'permanent', answered: true });
  });

  it.each<[string, number]>([
    ['ILLEGAL_TOPIC', 40002],
    ['MESSAGE_PROPERTY_CONFLICT_WITH_TYPE', 40014],
    ['UNAUTHORIZED', 40100],
    ['FORBIDDEN', 40300],
    ['NOT_FOUND', 40400],
    ['TOPIC_NOT_FOUND', 40402],
    ['gRPC PERMISSION_DENIED', 7],
    ['gRPC UNAUTHENTICATED', 16],
  ])('with %s is the fault of the topic', (_name, code) => {
    expect(classifySendFailure(coded(code))).toEqual({ failure: 'topic', answered: true });
  });

  it('that was throttled is transient, and surely not stored', () => {
    expect(classifySendFailure(coded(42900))).toEqual({ failure: 'transient', answered: true });
  });

  it.each<[string, unknown]>([
    ['INTERNAL_SERVER_ERROR', coded(50001)],
    ['HA_NOT_AVAILABLE', coded(50002)],
    ['PROXY_TIMEOUT', coded(50400)],
    ['MASTER_PERSISTENCE_TIMEOUT', coded(50401)],
    ['a code of a later version', coded(59999)],
    ['gRPC DEADLINE_EXCEEDED', coded(4)],
    ['gRPC UNAVAILABLE in flight', coded(14, '14 UNAVAILABLE: Connection dropped')],
    ['gRPC CANCELLED', coded(1)],
    ['an error without code', new Error('what')],
    ['something thrown', 'what'],
  ])('with %s is transient, and may have been stored', (_name, error) => {
    expect(classifySendFailure(error)).toEqual({ failure: 'transient', answered: false });
  });

  it('that never left is transient, and surely not stored', () => {
    const error = coded(14, '14 UNAVAILABLE: No connection established. Last error: connect ECONNREFUSED');
    expect(classifySendFailure(error)).toEqual({ failure: 'transient', answered: true });
  });

  it('that the client itself refused is told by its words', () => {
    const wrongType = new TypeError('Current message type not match with topic accept message types, topic=t');
    expect(classifySendFailure(wrongType)).toEqual({ failure: 'topic', answered: true });
    const tooLarge = new TypeError('Message body size exceeds the threshold, max size=1 bytes');
    expect(classifySendFailure(tooLarge)).toEqual({ failure: 'permanent', answered: true });
  });

  it('that the broker itself refused, and its proxy reported as a fault of the server, is permanent', () => {
    const words =
      'org.apache.rocketmq.proxy.common.ProxyException: the message is illegal, maybe msg body or properties length not matched.';
    expect(classifySendFailure(coded(50001, words))).toEqual({ failure: 'permanent', answered: true });
  });
});

describe('a failed start', () => {
  it('blames the topic where the broker did, looking through the causes', () => {
    const error = new Error('start', { cause: new Error('routes', { cause: coded(40402) }) });
    expect(classifyStartFailure(error)).toEqual({ failure: 'topic', answered: true });
  });

  it('is transient and harmless otherwise, never the fault of an event', () => {
    expect(classifyStartFailure(new Error('start', { cause: coded(40000) }))).toEqual({
      failure: 'transient',
      answered: true,
    });
    expect(classifyStartFailure(new Error('late'))).toEqual({ failure: 'transient', answered: true });
  });
});

it('An error is told in one line, with its code and without the address of a help page', () => {
  const message = '[request-id=undefined, response-code=40402] No topic t\nFor more information, please visit the url';
  expect(describeError(coded(40402, message))).toEqual({ code: 40402, text: '40402 No topic t' });
  expect(describeError('lost')).toEqual({ code: null, text: 'lost' });
});
