/** The session of whoever has signed in at the identity provider with this browser. */
const CSRF = "afl_csrf";
/** What has to be sent along to change something; pages of other sites cannot know it. */
export const CSRF_HEADER = "X-AFL-CSRF";

/** What the cookies say has to be sent along; null if nobody has signed in. */
export function csrfOf(cookies: string): string | null {
  for (const part of cookies.split(";")) {
    const [name, ...rest] = part.trim().split("=");
    if (name === CSRF && rest.length > 0) return rest.join("=");
  }
  return null;
}

export const session = {
  csrf: () => csrfOf(document.cookie),
};

/** Where to go to sign in, and to come back to this page afterwards. */
export function signInPlace(back: string): string {
  return `/auth/login?back=${encodeURIComponent(back)}`;
}

/** Whether this server has an identity provider to sign in at. */
export async function offersSignIn(signal: AbortSignal): Promise<boolean> {
  const answer = await fetch("/auth/offer", { signal });
  if (!answer.ok) return false;
  const offer = (await answer.json()) as { sign_in: boolean };
  return offer.sign_in;
}

/** Forgets the session in this browser. */
export async function signOut(): Promise<void> {
  const csrf = session.csrf();
  await fetch("/auth/logout", { method: "POST", headers: csrf ? { [CSRF_HEADER]: csrf } : {} });
}
