import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { PREFIX } from "~/api/client";
import { ApiError, asApiError, problemOf } from "~/api/problems";
import { queryClient } from "~/api/queries";
import type { Session } from "~/api/session";
import { Button } from "~/components/Button";
import { CopyCommand } from "~/components/Copy";
import { ErrorNotice, problemText } from "~/components/ErrorNotice";
import { TextField } from "~/components/Field";
import { text } from "~/texts/en";
import styles from "./SignIn.module.css";

export function SignIn({ session }: { session: Session }) {
  const [token, setToken] = useState("");
  const signIn = useMutation({
    mutationFn: async () => {
      const answer = await fetch(`${PREFIX}/v1/session`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "Foliot-CSRF": "1" },
        body: JSON.stringify({ token: token.trim() }),
      }).catch(() => {
        throw ApiError.unreachable();
      });
      if (!answer.ok) throw problemOf(answer, await answer.json().catch(() => null));
    },
    onSuccess: () => {
      setToken("");
      void queryClient.resetQueries();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    signIn.mutate();
  };
  const problem = signIn.error ? asApiError(signIn.error) : null;
  const isWrong = problem?.kind === "signed_out" || problem?.kind === "invalid";
  return (
    <div className={styles.page}>
      <h1>{text.signIn.title}</h1>
      {session.sign_in_refusal ? (
        <p className={styles.refusal}>{session.sign_in_refusal}</p>
      ) : (
        <form onSubmit={submit} className={styles.form}>
          <TextField
            label={text.signIn.token}
            hint={text.signIn.hint}
            type="password"
            autoComplete="off"
            required
            autoFocus
            isMono
            value={token}
            error={isWrong && problem ? (problem.kind === "invalid" ? text.signIn.malformed : problemText(problem)) : undefined}
            onChange={(event) => setToken(event.target.value)}
          />
          {problem && !isWrong && <ErrorNotice error={problem} />}
          <Button type="submit" kind="primary" isBusy={signIn.isPending}>
            {text.signIn.submit}
          </Button>
        </form>
      )}
      <details className={styles.more}>
        <summary>{text.signIn.without}</summary>
        <CopyCommand commands={[{ label: "foliot", command: "foliot token create me --role operator" }]} />
      </details>
    </div>
  );
}
