// Waiting for conditions, never for time.

/** How long anything may take on a busy machine. */
export const PATIENCE = 30_000;

/** Looks until `holds` gives something true, and gives that. */
export async function until(what, holds, patience = PATIENCE) {
  const deadline = Date.now() + patience;
  let last;
  while (Date.now() < deadline) {
    try {
      const held = await holds();
      if (held) return held;
      last = held;
    } catch (error) {
      last = error;
    }
    await new Promise((look) => setTimeout(look, 25));
  }
  throw new Error(`waited too long until ${what}`, { cause: last });
}
