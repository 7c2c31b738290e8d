#!/bin/sh
# A service manager's front end that does nothing: `systemctl --user VERB ...` or `launchctl VERB ...`,
# whichever name it is called by. Every call is one line in $FAKE_MANAGER_LOG. Verbs in
# $FAKE_MANAGER_FAIL are refused, those in $FAKE_MANAGER_HANG never come back; a verb in
# $FAKE_MANAGER_ONCE is refused at its first call only.
name=${0##*/}
printf '%s %s\n' "$name" "$*" >>"$FAKE_MANAGER_LOG"
[ "$1" = --user ] && shift
verb=$1
case " $FAKE_MANAGER_HANG " in *" $verb "*) exec sleep 600 ;; esac
case " $FAKE_MANAGER_FAIL " in *" $verb "*)
    echo "$verb is refused" >&2
    exit 5
    ;;
esac
case " $FAKE_MANAGER_ONCE " in *" $verb "*)
    if [ ! -e "$FAKE_MANAGER_LOG.$verb" ]; then
        : >"$FAKE_MANAGER_LOG.$verb"
        echo "$verb failed: 5: Input/output error" >&2
        exit 5
    fi
    ;;
esac
if [ "$verb" = show ]; then
    case "$*" in
    *ActiveState*) printf 'Id=mdello-companion.service\nActiveState=%s\n\nId=mdello-companion.socket\nActiveState=active\n' \
        "${FAKE_MANAGER_STATE:-active}" ;;
    *) echo Version=252 ;;
    esac
fi
exit 0
