_weft() {
  local command='' flag='' previous="${words[CURRENT-1]}" values i
  for ((i = 2; i < CURRENT; i++)); do
    case " $(_weft_values "$command ") " in
      *" ${words[i]} "*) [ "${words[i]}" = help ] || command="${command:+$command }${words[i]}" ;;
      *) break ;;
    esac
  done
  if [[ "$PREFIX" == --*=* ]]; then
    flag="${PREFIX%%=*}"
    compset -P '*='
  else
    case " $(_weft_flags "$command") " in *" $previous= "*) flag="$previous" ;; esac
  fi
  if [[ -z "$flag" && "$PREFIX" == -* ]]; then
    local -a switches with_values
    for i in ${=$(_weft_flags "$command")}; do
      case "$i" in *=) with_values+=("${i%=}") ;; *) switches+=("$i") ;; esac
    done
    compadd -S '=' -- $with_values
    compadd -- $switches
    return
  fi
  values="$(_weft_values "$command $flag")"
  if [ "$values" = ':files:' ]; then _files; else compadd -- ${=values}; fi
}
(( $+functions[compdef] )) || { autoload -U compinit && compinit }
compdef _weft weft
