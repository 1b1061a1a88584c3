/**
 * What shells are given. Each script asks `skep complete -- WORDS...` at every Tab and hands over the words as they were
 * typed, one argument each: nothing typed is expanded or run. An answer is one offer per line: value, tab, brief.
 */

const BASH = String.raw`# Completion of skep for bash. For good: put  source <(skep completion bash)  into ~/.bashrc
_skep_complete() {
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
  done < <(command skep complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -o default -F _skep_complete skep
`;

const ZSH = String.raw`#compdef skep
# Completion of skep for zsh. For good: put  source <(skep completion zsh)  behind compinit in ~/.zshrc
_skep() {
  local -a lines offers
  local line
  lines=("\${(@f)$(command skep complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "\${(@)lines}"; do
    [[ -n $line ]] || continue
    offers+=("\${\${line%%$'\t'*}//:/\\:}:\${line#*$'\t'}")
  done
  if (( \${#offers} )); then
    _describe -t skep skep offers
  else
    _files
  fi
}
if [[ \${funcstack[1]} == _skep ]]; then
  _skep "$@"
else
  compdef _skep skep
fi
`;

const FISH = String.raw`# Completion of skep for fish. For good:  skep completion fish > ~/.config/fish/completions/skep.fish
function __skep_complete
  set -l words (commandline --current-process --tokenize --cut-at-cursor)
  set -e words[1]
  set -l current (commandline --current-token --cut-at-cursor)
  command skep complete -- $words "$current" 2>/dev/null
end
complete --command skep --arguments '(__skep_complete)'
`;

const plain = (script: string): string => script.replaceAll(String.raw`\${`, '${');

/** The script of each shell. */
export const COMPLETION_SCRIPTS: ReadonlyMap<string, string> = new Map([
  ['bash', plain(BASH)],
  ['zsh', plain(ZSH)],
  ['fish', FISH],
]);
