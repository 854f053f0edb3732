// The page's document as dsat-host writes it (docs/report.md), and its sources: the file itself, or the server.

export interface Estimate { value: number; low: number; high: number | null }
export type Outcome =
  | 'completed' | 'out_of_memory' | 'failed' | 'timed_out' | 'invalid_config' | 'stopped' | 'lost' | 'diverged';
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

// A loss or a norm; what JSON has no number for is a word.
export type Step = number | 'nan' | 'inf' | '-inf' | null;

export interface Trial {
  id: number; parent: number | null; kind: string; duplicate_of: number | null;
  config: JsonObject; overrides: Json; note: string; outcome: Outcome | null; reason: string;
  metrics: JsonObject | null; curve: { losses: Step[]; grad_norms: Step[] } | null; peak_bytes: number | null; peak_source: string | null;
  peak_above_bytes: number | null; allocator_retries: number; slots: string[]; attempt: number;
  submitted_at: string | null; started_at: string | null; ended_at: string | null;
  phase: string; place: 'waiting' | 'running' | 'ended'; model_info: boolean; devices: number; stage: number;
  micro_batch: number | null; accumulation: number | null; train_batch: number | null; value: number | null;
  peak_estimate: Estimate | null; run_seconds: number | null; exit_code: number | null; term_signal: number | null;
  warnings: string[]; stderr_tail: string[]; engine_version: string; torch_version: string; driver_version: string;
}

export interface Stage {
  stage: number; trials: number; out_of_memory: number; failed: number; best_trial: number | null;
  best_value: number | null; ceiling: Estimate | null; largest_that_fitted: number | null;
  smallest_out_of_memory: number | null;
}

export interface Knob {
  key: string; share: number; values: { value: Json; trials: number; mean: number; best: number }[];
}

export interface Study {
  schema: number;
  version: string;
  study: JsonObject & {
    name: string; metric: string; direction: string; status: string; reason: string; dir: string;
    best: { trial: number; config: JsonObject; metrics: JsonObject; metric: number; why: string } | null;
    gain: {
      ratio: number; low: number | null; high: number | null; baseline: number; left_out: number;
      of_best: { value: number; measurements: number }; of_own: { value: number; measurements: number };
    } | null;
    check: { state: 'agrees' | 'own' | 'unchecked'; twin: number | null; text: string } | null;
    divergences: string[];
    end_to_end: { wall_us: number; engine_us: number; ratio: number | null; script_bound: boolean } | null;
  };
  profile: JsonObject | null;
  trials: Trial[];
  progress: {
    max_trials: number; started: number; running: number; waiting: number; ended: number;
    started_at: string | null; last_at: string | null; elapsed_seconds: number | null;
    time_budget_seconds: number | null; seconds_left: number | null;
  };
  stages: Stage[];
  best_path: { trial: number; value: number }[];
  has_own: boolean;
  changes: { key: string; own: Json; best: Json }[];
  knobs: Knob[];
  baseline: number | null;
  changed_train_batch: boolean;
  device_memory_bytes: number | null;
  payback: { spent_device_hours: number; saved_device_hours_per_day: number | null; days: number | null };
  plan: JsonObject;
}

// An entry of the server's list of studies.
export interface Listed {
  id: number; dir: string; error: string | null; name: string; status: string; metric: string; direction: string;
  started: number; max_trials: number; running: number; best: number | null; best_trial: number | null;
  gain: number | null; spent_device_hours: number; elapsed_seconds: number | null;
  // `ended`: the number of trials that have ended, in the study and at each step of the path.
  ended: number; best_path: { trial: number; value: number; ended: number }[];
}

async function inflate(base64: string): Promise<string> {
  const bytes = Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

// The study in the file itself; null: a server has it.
export async function embedded(): Promise<Study | null> {
  const element = document.getElementById('dsat-data');
  return element ? (JSON.parse(await inflate(element.textContent ?? '')) as Study) : null;
}

// Asks the server again and again; the server answers 304 while nothing has changed.
export class Followed<T> {
  private tag = '';
  constructor(private readonly url: string) {}
  // null: unchanged.
  async next(): Promise<T | null> {
    const headers: Record<string, string> = this.tag ? { 'If-None-Match': this.tag } : {};
    const answer = await fetch(this.url, { headers, cache: 'no-store' });
    if (answer.status === 304) return null;
    if (!answer.ok) throw new Error((await answer.text()).trim() || `the server answered ${answer.status}`);
    // The tag is kept only after the whole transfer. Otherwise the server would answer 304 for ever.
    const document = (await answer.json()) as T;
    this.tag = answer.headers.get('ETag') ?? '';
    return document;
  }
}
