/** One run of a sweep: processes of the tool that end in a finished run folder. */
export interface Job {
  /** Name of the run folder, unique and the same whenever the grid is the same. */
  readonly name: string;
  /** The run folder. */
  readonly folder: string;
  /** Configuration of the run, complete, as YAML. */
  readonly config: string;
  /** What is run once the training has ended, as arguments of the tool, e.g. [['evaluate', FOLDER, '--k', '1,3']]. */
  readonly then: readonly (readonly string[])[];
  /** Cores it keeps busy: threads × workers of its configuration. */
  readonly cores: number;
}

export interface JobProgress {
  readonly step: number;
  readonly steps: number;
  /** Validation performance so far, if there was a validation. */
  readonly best?: number;
}

export type Outcome =
  | { readonly state: 'done' }
  /** The reason is one sentence, without secrets. */
  | { readonly state: 'failed'; readonly reason: string };

/** Where jobs are run: processes on this machine, or workers that listen to a queue. */
export interface Executor {
  /** Runs a job, or resumes it if its folder is there, and settles when it has ended; it takes as many as it likes. */
  submit(job: Job, onProgress: (progress: JobProgress) => void): Promise<Outcome>;
  /** Lets what is running save itself and stop; what had not begun is given back. */
  close(): Promise<void>;
}
