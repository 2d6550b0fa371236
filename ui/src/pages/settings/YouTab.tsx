/** Who the caller is, and how times are shown. */
import { token as ownToken, type Schemas } from "../../api/client";
import { Button } from "../../components/Button";
import { Field } from "../../components/Field";
import { Select } from "../../components/Input";
import { useTimeStyle, type TimeStyle } from "../../lib/time";
import { Fact } from "./Fact";
import { ROLES, type Role } from "./roles";

export function YouTab({ me }: { me: Schemas["Me"] | undefined }) {
  const [style, setStyle] = useTimeStyle();
  return (
    <>
      {me && (
        <dl className="flex flex-wrap gap-8 rounded-lg border border-line bg-surface px-4 py-3 text-[13px]">
          <Fact word="You are" value={me.subject} />
          <Fact word="Role" value={`${me.role}: ${ROLES[me.role as Role] ?? ""}`} />
          <Fact word="Tenant" value={me.tenant === "*" ? "all of them" : me.tenant} />
        </dl>
      )}
      <Field label="Times are shown" className="max-w-xs">
        <Select value={style} onChange={(event) => setStyle(event.target.value as TimeStyle)}>
          <option value="relative">relative to now</option>
          <option value="local">in your time zone</option>
          <option value="utc">in UTC</option>
        </Select>
      </Field>
      {ownToken.get() && (
        <div>
          <Button
            onClick={() => {
              ownToken.set(null);
              window.location.reload();
            }}
          >
            Sign out
          </Button>
        </div>
      )}
    </>
  );
}
