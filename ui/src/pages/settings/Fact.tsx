/** A word and what is true of it. */

export function Fact({ word, value }: { word: string; value: string }) {
  return (
    <div>
      <dt className="text-xs text-muted">{word}</dt>
      <dd className="font-medium">{value}</dd>
    </div>
  );
}
