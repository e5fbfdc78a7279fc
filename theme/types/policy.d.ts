// What sitegen renders from policy/data as `policy.js` (policy/src/script.rs).
export const methods: Record<string, string[]>;
export const limits: {
  messageBytesMax: number;
  messagesPerSecondMax: number;
  messagesBurstMax: number;
  messagesRefusedMax: number;
  dialogsInARowMax: number;
  focusTheftsMax: number;
  savesPerMinuteMax: number;
  loadsPerMinuteMax: number;
  autosaveSecondsMin: number;
  pythonCallsWaitingMax: number;
  requestSecondsMax: number;
  hiddenSecondsMax: number;
  loadSecondsMax: number;
};
export const saves: {
  bodyBytesMax: number;
  wordLetters: number;
  passphraseRounds: number;
  idleYearsMax: number;
};
export const work: {
  htmlBytesMax: number;
  pythonBytesMax: number;
  sidecarBytesMax: number;
  coverBytesMax: number;
  slugCharsMax: number;
};
export const zip: { archiveBytesMax: number };
