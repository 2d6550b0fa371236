import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { Button } from "./Button";

/** Copies a text, and says so. */
export function CopyButton({
  text,
  label = "Copy",
  children,
  className,
}: {
  text: string | (() => string);
  /** Names the button; shown only where there are no children. */
  label?: string;
  children?: React.ReactNode;
  className?: string;
}) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    const value = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      // browsers give the clipboard only to secure pages: the old way works on the others
      const area = document.createElement("textarea");
      area.value = value;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    setCopied(true);
  };
  return (
    <Button
      variant="ghost"
      size="sm"
      icon={copied ? Check : Copy}
      aria-label={children ? undefined : copied ? "Copied" : label}
      title={copied ? "Copied" : label}
      className={className}
      onClick={(event) => {
        event.stopPropagation();
        void copy();
      }}
    >
      {children}
    </Button>
  );
}
