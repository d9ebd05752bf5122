_weft() {
  local command='' flag='' current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" values i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case " $(_weft_values "$command ") " in
      *" ${COMP_WORDS[i]} "*) [ "${COMP_WORDS[i]}" = help ] || command="${command:+$command }${COMP_WORDS[i]}" ;;
      *) break ;;
    esac
  done
  if [ "$current" = '=' ]; then
    flag="$previous" current=''
  elif [ "$previous" = '=' ]; then
    flag="${COMP_WORDS[COMP_CWORD-2]}"
  else
    case " $(_weft_flags "$command") " in *" $previous= "*) flag="$previous" ;; esac
  fi
  COMPREPLY=()
  if [ -z "$flag" ] && [ "${current#-}" != "$current" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_weft_flags "$command")" -- "$current")
    case "${COMPREPLY[0]}" in *=) compopt -o nospace 2>/dev/null ;; esac
    return 0
  fi
  values="$(_weft_values "$command $flag")"
  if [ "$values" = ':files:' ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current")
  fi
}
complete -F _weft weft
