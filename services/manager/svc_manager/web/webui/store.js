// What the page knows: fetched once, then kept up to date by the server's events.

const SETTLE_MS = 250; // changes are gathered this long before they are fetched and drawn
const MOST_IDS = 100;
const PAGE = 1000;

export class Store extends EventTarget {
  /** `id` is empty on the listener of one experiment. */
  constructor(id) {
    super();
    this.root = "api/v1/nni/";
    this.base = id ? `${this.root}experiments/${encodeURIComponent(id)}/` : this.root;
    this.profile = null;
    this.status = null;
    this.counts = {};
    this.trials = new Map();
    this.asked = 0;
    this.canChange = false;
    this.live = false;
    this.changed = new Set();
    this.timer = null;
  }

  /** Fetch everything and follow what happens from then on. */
  async open() {
    this.canChange = (await this.get("session", this.root)).canChange;
    await this.follow(); // first, so that nothing happens unseen between fetching and following
    await this.refresh();
    this.tell();
    await this.loadTrials();
  }

  async get(path, base = this.base) {
    const answer = await fetch(base + path, { headers: { accept: "application/json" } });
    return unpack(answer);
  }

  async send(method, path, body) {
    return unpack(await fetch(this.base + path, {
      method,
      headers: { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    }));
  }

  async refresh() {
    this.asked = Date.now();
    [this.profile, this.status, this.counts] = await Promise.all([
      this.get("experiment"), this.get("check-status"), this.get("job-statistics"),
    ]);
  }

  async loadTrials() {
    for (let path = `trial-jobs?limit=${PAGE}`; path; ) {
      const answer = await fetch(this.base + path);
      for (const trial of await unpack(answer)) this.put(trial);
      this.tell(); // what is there is shown while the rest is on its way
      const next = /[?]([^>]*)>; rel="next"/.exec(answer.headers.get("link") || "");
      path = next ? `trial-jobs?${next[1]}` : null;
    }
  }

  /** Return the time used so far; it runs on between two answers while the experiment does. */
  executionSeconds() {
    const running = ["RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL"].includes(this.status.status);
    return this.profile.execDuration + (running ? (Date.now() - this.asked) / 1000 : 0);
  }

  put(trial) {
    const given = JSON.parse(trial.hyperParameters[0]);
    this.trials.set(trial.trialJobId, { ...trial, parameters: given.parameters, source: given.parameter_source });
  }

  /** Follow the events from now on; resolves when that has begun, or could not begin at once. */
  follow() {
    const source = new EventSource(`${this.base}events?after=latest`);
    let again = false;
    const begun = new Promise((resolve) => {
      source.onopen = () => {
        this.setLive(true);
        if (again) this.reload(); // the server may have been away for long
        again = true;
        resolve();
      };
      source.onerror = () => { this.setLive(false); again = true; resolve(); };
    });
    const note = (message) => {
      const { trialId } = JSON.parse(message.data);
      this.changed.add(trialId || "");
      this.settle();
    };
    const kinds = ["trial_scheduled", "trial_started", "metric_reported", "trial_stop_requested", "trial_lost",
      "trial_ended", "trial_unknown", "trial_waits", "algorithm_started", "algorithm_failed", "algorithm_diverged",
      "budget_changed", "search_space_changed", "data_imported", "experiment_state_changed", "experiment_ended",
      "listener_opened", "listener_closed", "parameters_generated"];
    for (const kind of kinds) source.addEventListener(kind, note);
    return begun;
  }

  reload() {
    this.loadTrials().then(() => { this.changed.add(""); this.settle(); }, () => this.setLive(false));
  }

  settle() {
    this.timer ??= setTimeout(() => this.update(), SETTLE_MS);
  }

  async update() {
    const ids = [...this.changed].filter(Boolean);
    this.changed.clear();
    try {
      const work = [this.refresh()];
      for (let i = 0; i < ids.length; i += MOST_IDS) {
        work.push(this.get(`trial-jobs?ids=${ids.slice(i, i + MOST_IDS).join(",")}`)
          .then((trials) => trials.forEach((trial) => this.put(trial))));
      }
      await Promise.all(work);
    } catch { // the server is away; the event stream tells when it is back
      ids.forEach((id) => this.changed.add(id));
    }
    this.timer = null;
    if (this.changed.size) this.settle();
    this.tell();
  }

  setLive(live) {
    this.live = live;
    this.tell();
  }

  tell() {
    this.dispatchEvent(new Event("change"));
  }
}

async function unpack(answer) {
  const text = await answer.text();
  const data = text ? JSON.parse(text) : null;
  if (!answer.ok) throw new Error(data?.error || `${answer.status} ${answer.statusText}`);
  return data;
}
