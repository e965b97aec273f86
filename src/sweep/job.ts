/** One run of a sweep: processes of the tool that end in a finished run folder. */
export interface Job {
  /** Name of the run folder, unique and the same whenever the grid is the same. */
  readonly name: string;
  /** The run folder. */
  readonly folder: string;
  /** Configuration of the run, complete, as YAML. */
  readonly config: string;
  /**
   * What is run once the training has ended: a verb of the tool and its flags, e.g. [['evaluate', '--k', '1,3']]; the run
   * folder is put between them. A run may be submitted again with other verbs, once it has ended: it is then not trained
   * a second time, and verbs that have been run are not run again.
   */
  readonly after: readonly (readonly string[])[];
  /** Cores it keeps busy: `coresOf` its configuration. */
  readonly cores: number;
  /** Train for so many updates at first; submitted again, the run goes on from there. Default: to the end. */
  readonly until?: number;
}

/** How far a job is. */
export interface JobProgress {
  /** Updates made. */
  readonly step: number;
  /** Updates of the whole run; undefined if it is not known beforehand. */
  readonly steps: number | undefined;
  /** Best validation performance so far, if there was a validation. */
  readonly best?: number;
}

/** How a job has ended. */
export type Outcome =
  | { readonly state: 'done' }
  /** The reason is one sentence, without secrets. */
  | { readonly state: 'failed'; readonly reason: string }
  /** It was asked to stop and has saved itself: submitted once more, it goes on. */
  | { readonly state: 'stopped' };

/** Where jobs are run: processes on this machine, or workers that listen to a queue. */
export interface Executor {
  /**
   * Runs a job, or resumes it if its folder is there, and settles when it has ended; it takes as many as it likes.
   * `onProgress` is called when the job begins, and whenever it has got further.
   */
  submit(job: Job, onProgress: (progress: JobProgress) => void): Promise<Outcome>;
  /** Lets what is running save itself and stop; what had not begun is given back (its outcome: stopped). */
  close(): Promise<void>;
}
