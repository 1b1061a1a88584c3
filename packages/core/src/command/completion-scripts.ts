/**
 * What shells are given, for a program NAME and an IDENT made of its name. Each script asks `NAME complete -- WORDS...` at
 * every Tab and hands over the words as they were typed, one argument each: nothing typed is expanded or run. An answer is
 * one offer per line: value, tab, brief.
 */

const BASH = String.raw`# Completion of NAME for bash. For good: put  source <(NAME completion bash)  into ~/.bashrc
_IDENT_complete() {
  local rest=$COMP_LINE word trimmed joined prefix offer brief i
  local -a words=()
  # bash cuts words at = and : as well. What stands together in the line is one word.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    trimmed=\${rest#"\${rest%%[![:space:]]*}"}
    if ((i > 0)) && [[ $trimmed == "$rest" ]]; then
      words[\${#words[@]}-1]+=$word
    else
      words+=("$word")
    fi
    rest=\${trimmed#"$word"}
  done
  joined=\${words[\${#words[@]}-1]}
  # Only what follows the last cut is replaced.
  case $word in
    [:=]*) prefix=$joined ;;
    *) prefix=\${joined%"$word"} ;;
  esac
  COMPREPLY=()
  while IFS=$'\t' read -r offer brief; do
    [[ $offer == "$joined"* ]] && COMPREPLY+=("\${offer#"$prefix"}")
  done < <(command NAME complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -o default -F _IDENT_complete NAME
`;

const ZSH = String.raw`#compdef NAME
# Completion of NAME for zsh. For good: put  source <(NAME completion zsh)  behind compinit in ~/.zshrc
_IDENT() {
  local -a lines offers
  local line
  lines=("\${(@f)$(command NAME complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "\${(@)lines}"; do
    [[ -n $line ]] || continue
    offers+=("\${\${line%%$'\t'*}//:/\\:}:\${line#*$'\t'}")
  done
  if (( \${#offers} )); then
    _describe -t NAME NAME offers
  else
    _files
  fi
}
if [[ \${funcstack[1]} == _IDENT ]]; then
  _IDENT "$@"
else
  compdef _IDENT NAME
fi
`;

const FISH = String.raw`# Completion of NAME for fish. For good:  NAME completion fish > ~/.config/fish/completions/NAME.fish
function __IDENT_complete
  set -l words (commandline --current-process --tokenize --cut-at-cursor)
  set -e words[1]
  set -l current (commandline --current-token --cut-at-cursor)
  command NAME complete -- $words "$current" 2>/dev/null
end
complete --command NAME --arguments '(__IDENT_complete)'
`;

/** The shells that there are scripts for. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;

const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH };

/** Undefined for a shell that there is no script for. */
export function completionScript(shell: string, program: string): string | undefined {
  if (!Object.hasOwn(SCRIPTS, shell)) return undefined;
  return SCRIPTS[shell]
    ?.replaceAll(String.raw`\${`, '${')
    .replaceAll('IDENT', program.replaceAll('-', '_'))
    .replaceAll('NAME', program);
}
