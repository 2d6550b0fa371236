/** One turn of an agent, as it went and as it goes. */
import { useParams } from "@tanstack/react-router";
import { Page } from "../../components/Page";
import { shortId } from "../../lib/format";
import { useLive } from "../../lib/live";
import { TranscriptPanel } from "../run/transcript/TranscriptPanel";

export default function TurnPage() {
  const { turn } = useParams({ strict: false }) as { turn: string };
  useLive([`turn:${turn}`]);
  return (
    <Page title={`Turn ${shortId(turn)}`} name={`Turn ${shortId(turn)}`} live>
      <TranscriptPanel turn={turn} />
    </Page>
  );
}
