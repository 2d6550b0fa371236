/** What has changed between two sets of files, line by line, with a few lines around. */
export interface SourceFile {
  name: string;
  text: string;
}
export interface Line {
  sign: "+" | "-" | " ";
  text: string;
}
export interface Part {
  name: string;
  added: number;
  removed: number;
  lines: Line[];
}

const AROUND = 3;

export function difference(before: SourceFile[], after: SourceFile[]): Part[] {
  const names = [...new Set([...before, ...after].map((file) => file.name))].sort();
  const text = (files: SourceFile[], name: string) => files.find((file) => file.name === name)?.text ?? "";
  return names.flatMap((name) => {
    const lines = compared(text(before, name).split("\n"), text(after, name).split("\n"));
    const added = lines.filter((line) => line.sign === "+").length;
    const removed = lines.filter((line) => line.sign === "-").length;
    return added + removed > 0 ? [{ name, added, removed, lines: shortened(lines) }] : [];
  });
}

/** By the longest common part, after what is equal at both ends was put aside. */
export function compared(before: string[], after: string[]): Line[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end += 1;
  }
  const old = before.slice(start, before.length - end);
  const now = after.slice(start, after.length - end);
  const same = (text: string): Line => ({ sign: " ", text });
  return [
    ...before.slice(0, start).map(same),
    ...middle(old, now),
    ...before.slice(before.length - end).map(same),
  ];
}

function middle(old: string[], now: string[]): Line[] {
  const width = now.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      common[i * width + j] =
        old[i] === now[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const lines: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push({ sign: " ", text: old[i]! });
      i += 1;
      j += 1;
    } else if (i < old.length && (j === now.length || common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      lines.push({ sign: "-", text: old[i]! });
      i += 1;
    } else {
      lines.push({ sign: "+", text: now[j]! });
      j += 1;
    }
  }
  return lines;
}

function shortened(lines: Line[]): Line[] {
  const near = lines.map((_, at) =>
    lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some((line) => line.sign !== " "),
  );
  return lines.flatMap((line, at) => {
    if (near[at]) return [line];
    return at > 0 && near[at - 1] ? [{ sign: " ", text: "…" } as Line] : [];
  });
}
