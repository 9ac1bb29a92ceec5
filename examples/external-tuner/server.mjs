// An external tuner: nni_proto.tuning.v1.TuningService, served by Node.
//
//   node server.mjs --port 50080 --proto ../../proto

import path from 'node:path';
import { parseArgs } from 'node:util';

import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';

import { HillClimber } from './climber.mjs';
import { Whole, fromValue, toValue } from './values.mjs';

const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const { values: options } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '50080' },
    proto: { type: 'string', default: path.join(here, '..', '..', 'proto') },
  },
});

const definition = protoLoader.loadSync('nni_proto/tuning/v1/tuning_service.proto', {
  includeDirs: [options.proto],
  keepCase: true, // names as in the contract
  longs: String, // 64 bits do not fit into a number
  enums: String,
  oneofs: true, // `kind` says which of a Value's fields is set
});
const contract = grpc.loadPackageDefinition(definition).nni_proto.tuning.v1;

/** Sessions by id: the tuner, the space as it was written, and parameters of open trials. */
const sessions = new Map();
let opened = 0;

class CallError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function sessionOf(request) {
  const session = sessions.get(request.session_id);
  if (!session) {
    throw new CallError(grpc.status.NOT_FOUND, `there is no session '${request.session_id ?? ''}'`);
  }
  return session;
}

/** Runs `work`; what it throws about its arguments becomes INVALID_ARGUMENT. */
function checked(work) {
  try {
    return work();
  } catch (error) {
    throw new CallError(grpc.status.INVALID_ARGUMENT, error.message);
  }
}

/** The space with every integer option wrapped, so that it goes out as it came in. */
function typedOptions(space) {
  const typed = {};
  for (const { key, value } of space.map_value?.entries ?? []) {
    const fields = Object.fromEntries(
      (value?.map_value?.entries ?? []).map((entry) => [entry.key, entry.value]),
    );
    const kind = fields._type?.string_value;
    const items = fields._value?.list_value?.items ?? [];
    typed[key] = { kind, items };
  }
  return typed;
}

/** The message of one parameter: integers of `randint`, options of `choice` as they were given. */
function parameterValue(typed, value) {
  if (typed?.kind === 'randint') return toValue(new Whole(value));
  if (typed?.kind === 'choice') return typed.items.find((item) => fromValue(item) === value) ?? {};
  return toValue(value);
}

/** The number that is tuned: the report itself, or its entry `default`. */
function measured(value) {
  const number = value !== null && typeof value === 'object' ? value.default : value;
  return typeof number === 'number' ? number : NaN;
}

const calls = {
  OpenSession(request) {
    const classArgs = fromValue(request.class_args) ?? {};
    const mode = classArgs.optimize_mode ?? 'minimize';
    if (!['minimize', 'maximize'].includes(mode)) {
      throw new CallError(
        grpc.status.INVALID_ARGUMENT,
        `optimize_mode must be minimize or maximize, got ${mode}`,
      );
    }
    const space = request.search_space;
    const tuner = checked(
      () => new HillClimber(fromValue(space), request.seed ?? '0', mode === 'maximize'),
    );
    opened += 1;
    const id = `session-${opened}`;
    sessions.set(id, { tuner, typed: typedOptions(space), open: new Map() });
    return { session_id: id };
  },

  UpdateSearchSpace(request) {
    const session = sessionOf(request);
    checked(() => session.tuner.updateSpace(fromValue(request.search_space)));
    session.typed = typedOptions(request.search_space);
    return {};
  },

  GenerateParameters(request) {
    const { tuner, typed, open } = sessionOf(request);
    const suggestions = (request.parameter_ids ?? []).map((id) => {
      const { parameters, reason } = tuner.suggest();
      open.set(id, parameters);
      const entries = Object.entries(parameters).map(([key, value]) => ({
        key,
        value: parameterValue(typed[key], value),
      }));
      return {
        parameter_id: id,
        parameters: { map_value: { entries } },
        provenance: toValue({ drawn: reason }),
      };
    });
    return { suggestions };
  },

  ReportMetric(request) {
    const { tuner, open } = sessionOf(request);
    if (request.metric?.type === 'METRIC_TYPE_FINAL') {
      const parameters = open.get(request.parameter_id) ?? fromValue(request.parameters);
      tuner.learn(parameters, measured(fromValue(request.metric.value)));
    }
    return {};
  },

  EndTrial(request) {
    sessionOf(request).open.delete(request.parameter_id);
    return {};
  },

  ImportData(request) {
    const { tuner } = sessionOf(request);
    const samples = checked(() => fromValue(request.data)) ?? [];
    for (const sample of Array.isArray(samples) ? samples : []) {
      tuner.learn(sample?.parameter ?? null, measured(sample?.value ?? null));
    }
    return {};
  },

  CloseSession(request) {
    sessions.delete(request.session_id); // a second time there is nothing left to do
    return {};
  },
};

function handler(work) {
  return (call, answer) => {
    try {
      answer(null, work(call.request));
    } catch (error) {
      if (!(error instanceof CallError)) console.error(error);
      answer({ code: error.code ?? grpc.status.INTERNAL, details: error.message });
    }
  };
}

const server = new grpc.Server({
  // Search spaces may be large.
  'grpc.max_receive_message_length': 64 * 1024 * 1024,
  'grpc.max_send_message_length': 64 * 1024 * 1024,
});
server.addService(
  contract.TuningService.service,
  Object.fromEntries(Object.entries(calls).map(([name, work]) => [name, handler(work)])),
);
server.bindAsync(
  `${options.host}:${options.port}`,
  grpc.ServerCredentials.createInsecure(),
  (error, port) => {
    if (error) {
      console.error(error.message);
      process.exit(1);
    }
    console.log(`listening on ${options.host}:${port}`);
  },
);
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => server.tryShutdown(() => process.exit(0)));
}
