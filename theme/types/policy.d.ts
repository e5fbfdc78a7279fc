// What sitegen renders from policy/data as `policy.js` (policy/src/script.rs).
export const methods: Record<string, string[]>;
export const limits: {
  messageBytesMax: number;
  messagesPerSecondMax: number;
  messagesBurstMax: number;
  messagesRefusedMax: number;
  dialogsInARowMax: number;
  focusTheftsMax: number;
  hiddenSecondsMax: number;
  loadSecondsMax: number;
};
