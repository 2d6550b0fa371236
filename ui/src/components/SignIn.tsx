/** The way to the identity provider, where the server has one. */
import { useQuery } from "@tanstack/react-query";
import { offersSignIn, signInPlace } from "../api/session";
import { buttonClass } from "./Button";

export function SignIn() {
  const offered = useQuery({
    queryKey: ["sign-in"],
    queryFn: ({ signal }) => offersSignIn(signal),
    staleTime: Infinity,
    retry: false,
  });
  if (!offered.data) return null;
  return (
    <a
      href={signInPlace(location.pathname + location.search)}
      className={buttonClass("primary")}
    >
      Sign in
    </a>
  );
}
