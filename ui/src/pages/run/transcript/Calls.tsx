/** The requests of a turn, with what each used and cost. */
import { count, money } from "../../../lib/format";
import type { Transcript } from "../queries";

const NUMBER = "px-2 py-1 text-right tabular-nums";

export function Calls({ calls, cost }: { calls: Transcript["calls"]; cost: number }) {
  const sum = (field: "input" | "output" | "cache_read" | "cache_write") =>
    count(calls.reduce((all, one) => all + one.usage[field], 0));
  return (
    <section>
      <h3 className="mb-1 text-xs font-medium text-muted">Requests to models</h3>
      <div className="overflow-x-auto rounded-md border border-line" tabIndex={0} role="region" aria-label="Requests to models">
        <table className="w-full text-xs">
          <thead className="bg-sunken text-left text-muted">
            <tr>
              <th className="px-2 py-1 font-medium">#</th>
              <th className="px-2 font-medium">Model</th>
              <th className={`${NUMBER} font-medium`}>In</th>
              <th className={`${NUMBER} font-medium`}>Out</th>
              <th className={`${NUMBER} font-medium`}>Cache read</th>
              <th className={`${NUMBER} font-medium`}>Cache write</th>
              <th className="px-2 font-medium">End</th>
              <th className={`${NUMBER} font-medium`}>Price</th>
            </tr>
          </thead>
          <tbody>
            {calls.map((call) => (
              <tr key={call.number} className="border-t border-line">
                <td className="px-2 py-1 tabular-nums">{call.number}</td>
                <td className="max-w-40 truncate px-2" title={call.model}>{call.model}</td>
                <td className={NUMBER}>{count(call.usage.input)}</td>
                <td className={NUMBER}>{count(call.usage.output)}</td>
                <td className={NUMBER}>{count(call.usage.cache_read)}</td>
                <td className={NUMBER}>{count(call.usage.cache_write)}</td>
                <td className="px-2">{call.finish}</td>
                <td className={NUMBER} title={`prices of ${call.price_version}`}>{money(call.cost_usd)}</td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr className="border-t border-line font-medium">
              <td className="px-2 py-1" colSpan={2}>Total</td>
              <td className={NUMBER}>{sum("input")}</td>
              <td className={NUMBER}>{sum("output")}</td>
              <td className={NUMBER}>{sum("cache_read")}</td>
              <td className={NUMBER}>{sum("cache_write")}</td>
              <td />
              <td className={NUMBER}>{money(cost)}</td>
            </tr>
          </tfoot>
        </table>
      </div>
    </section>
  );
}
