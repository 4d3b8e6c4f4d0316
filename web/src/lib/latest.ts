// Search as you type: at most one request under way. What is typed meanwhile waits, and only the last of it is asked.
export function latest<Asked, Found>(
  ask: (asked: Asked) => Promise<Found>,
  show: (found: Found, asked: Asked) => void,
  fail: (reason: unknown) => void,
): (asked: Asked) => void {
  let underWay = false;
  let next: { asked: Asked } | undefined;

  async function run(asked: Asked): Promise<void> {
    underWay = true;
    try {
      show(await ask(asked), asked);
    } catch (reason) {
      fail(reason);
    }
    underWay = false;
    const waiting = next;
    next = undefined;
    if (waiting) void run(waiting.asked);
  }

  return (asked) => {
    if (underWay) next = { asked };
    else void run(asked);
  };
}
