/**
 * What `tf.js` gives to a work. Every function returns a promise; what fails, fails with a `TF.Problem`, whose `message`
 * is a sentence that can be shown to the player.
 */
declare namespace TF {
  /** What JSON can hold. */
  type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

  type Capability = "audio" | "fullscreen" | "pointer_lock" | "python_backend" | "save_api";

  /** Of the bridge itself, in every call. */
  type BridgeProblem =
    | "alone"          // the work is not inside its page; all other functions fail with this
    | "undeclared"     // work.json does not declare what was asked for
    | "unknown-method" | "bad-request"
    | "too-large"      // a message, or a state, is over its limit
    | "too-fast"       // more than is answered in a second, or a minute
    | "unavailable"    // something went wrong in the page
    | "insecure";      // the site was opened without https

  /** Of the way to the server. */
  type ServerProblem = "offline" | "unreachable" | "busy" | "rate" | "slow-body";

  type SaveProblem =
    | "bad-code"       // not a code: its length, or a character that no code has
    | "not-found"      // no save of this work under that code
    | "wrong-code"     // the save is there, and the code does not open it
    | "wrong-word"     // `attempts_left`; the page has opened its drawer and asks the player for the word
    | "word-wait"      // too many wrong words: `wait_seconds`
    | "newer-save"     // another device saved in the meantime; the page asks the player which one to keep
    | "too-deep" | "storage-full" | "quota" | "damaged";

  type PythonProblem =
    | "python-closed" | "python-busy" | "python-timeout" | "python-memory" | "python-processes" | "python-output"
    | "python-bad-answer" | "python-denied" | "python-crash" | "python-inputs" | "python-unknown"
    | "python-error";  // the function raised: `error_type`, `line`

  interface Problem extends Error {
    type: BridgeProblem | ServerProblem | SaveProblem | PythonProblem;
    attempts_left?: number;
    wait_seconds?: number;
    error_type?: string;
    line?: number | null;
  }

  /** Fulfilled once the page has answered; fails at once, with "alone", where there is none. */
  const ready: Promise<{ capabilities: Capability[] }>;

  /**
   * Saves a state, at most 255 KiB of JSON, in the position that the player chose. The code is the same at every save of
   * a visit. It is null while the player keeps saves offline: then the page holds the state, and nothing has one.
   */
  function save(state: Json): Promise<{ code: string | null }>;

  /**
   * Without a code: the state of this visit, or null. Ask for it at the start: when the player loads a save in the page's
   * drawer, the work is started again. With a code: the state that is saved under it, which this visit goes on with.
   */
  function load(code?: string): Promise<Json>;

  /**
   * What the work's Python function returns. A work that also declares `save_api`, and sends no `state` of its own, has
   * the state of this visit sent along as `inputs.state`, a string of JSON or null; a `state` in the answer replaces it.
   */
  function backend(inputs: { [name: string]: Json }): Promise<Json>;

  /** Locks the pointer; from a click or a key only. */
  function pointerLock(): Promise<object>;
  function pointerUnlock(): Promise<object>;

  /** Movement while the pointer is locked. */
  let onpointer: ((dx: number, dy: number) => void) | null;
  let onpointerbutton: ((button: number, down: boolean) => void) | null;
  /** The player took the pointer back. */
  let onpointerlost: (() => void) | null;
}
