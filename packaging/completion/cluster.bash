# Completion in bash for the commands named at its end; installed once under each name.
#
# Options are taken from what each command says to --help, so they are the ones that it has. Nothing of the package
# bash-completion is needed but that it finds this file.

# _cluster_help COMMAND... : the options that it names in its help.
_cluster_help() {
    "$@" --help 2>/dev/null | grep -oE -- '(^|[][ ,|(])--?[a-z][a-z-]*' | grep -oE -- '--?[a-z][a-z-]*' | sort -u
}

# _cluster_list SECTION : the names that `cluster-perf --list` has under a heading.
_cluster_list() {
    cluster-perf --list 2>/dev/null | sed -n "/^$1/,/^[a-z]/s/^  \([^ ]*\).*/\1/p"
}

# _cluster_clusters, _cluster_nodes : those that `vcluster list` shows.
_cluster_clusters() {
    vcluster list 2>/dev/null | sed -n 's/^\([^ ]*\): .*/\1/p'
}
_cluster_nodes() {
    vcluster list 2>/dev/null | sed -n 's/^  \([^ ]*\).*/\1/p' | sort -u
}

# _cluster_words WORDS : those that begin as the word does that is being written; of a list, as its last part does.
_cluster_words() {
    local done="" last=$word
    case "$word" in -*) ;; *,*) done=${word%,*}, last=${word##*,} ;; esac
    mapfile -t COMPREPLY < <(compgen -P "$done" -W "$1" -- "$last")
}

_cluster_perf() {
    case "$before" in
        --peers) _cluster_words "$(_cluster_list transports)" ;;
        --measures) _cluster_words "$(_cluster_list measures)" ;;
        --places) _cluster_words "inside between" ;;
        --json | --from | --markdown) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        --plots | --build) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        *) _cluster_words "$(_cluster_help cluster-perf)" ;;
    esac
}

_cluster_info() {
    case "$before" in
        --pid) mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$word") ;;
        *) _cluster_words "$(_cluster_help cluster-info)" ;;
    esac
}

_cluster_dissect() {
    case "$word" in
        -*) _cluster_words "$(_cluster_help cluster-dissect)" ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    esac
}

_cluster_vcluster() {
    local command=${COMP_WORDS[1]}
    if [ "$COMP_CWORD" -eq 1 ]; then
        _cluster_words "up exec mpirun faults agents list down --help"
        return
    fi
    case "$before" in
        --name) _cluster_words "$(_cluster_clusters)" ; return ;;
        --start | --stop | --kill) _cluster_words "$(_cluster_nodes) all" ; return ;;
        --on | --node) _cluster_words "$(_cluster_nodes)" ; return ;;
    esac
    case "$word" in
        -*) _cluster_words "$(_cluster_help vcluster "$command")" ;;
        *)
            if [ "$command" = exec ] && [ "$COMP_CWORD" -eq 2 ]; then
                _cluster_words "$(_cluster_nodes) switch"
            else
                mapfile -t COMPREPLY < <(compgen -c -f -- "$word" | sort -u)
            fi ;;
    esac
}

# _cluster_known : the nodes that the agent knows. _cluster_machines : the machines that the user has saved.
_cluster_known() {
    cluster-status --json 2>/dev/null | sed -n 's/^   "name": "\(.*\)",$/\1/p'
}
_cluster_machines() {
    cluster-machine --json 2>/dev/null | grep -o '"[^"]*": \[' | cut -d '"' -f 2
}

_cluster_machine() {
    case "$word" in
        -*) _cluster_words "$(_cluster_help cluster-machine)" ;;
        *) if [ "$COMP_CWORD" -eq 1 ]; then _cluster_words "$(_cluster_machines)"; else _cluster_words "$(_cluster_known)"; fi ;;
    esac
}

_cluster_run() {
    case "$before" in
        -m | --machine) _cluster_words "$(_cluster_machines)" ; return ;;
        --nodes) _cluster_words "$(_cluster_known)" ; return ;;
    esac
    case "$word" in
        -*) _cluster_words "$(_cluster_help cluster-run)" ;;
        *) mapfile -t COMPREPLY < <(compgen -c -f -- "$word" | sort -u) ;;
    esac
}

_cluster_map() {
    case "$word" in
        -*) _cluster_words "$(_cluster_help cluster-map)" ;;
        *) _cluster_words "$(_cluster_known)" ;;
    esac
}

_cluster_status() {
    case "$before" in
        --drain | --isolate | --resume | --forget | --why | --rate) _cluster_words "$(_cluster_known)" ;;
        *) _cluster_words "$(_cluster_help cluster-status)" ;;
    esac
}

_cluster_why() {
    case "$before" in
        --cluster-info) mapfile -t COMPREPLY < <(compgen -c -f -- "$word" | sort -u) ; return ;;
        --remote) mapfile -t COMPREPLY < <(compgen -c -- "$word" | sort -u) ; return ;;
    esac
    case "$word" in
        -*) _cluster_words "$(_cluster_help cluster-why)" ;;
        *) _cluster_words "$(cluster-why --list 2>/dev/null | sed -n 's/^\([^ ]*\): .*/\1/p')" ;;
    esac
}

_cluster_key() {
    case "$before" in
        --secret | --out) mapfile -t COMPREPLY < <(compgen -f -- "$word") ; return ;;
        --owner) mapfile -t COMPREPLY < <(compgen -u -- "$word") ; return ;;
    esac
    case "$word" in
        -*) _cluster_words "$(_cluster_help cluster-key)" ;;
        *) mapfile -t COMPREPLY < <(compgen -c -f -- "$word" | sort -u) ;;
    esac
}

_cluster_agent() {
    case "$before" in
        --key-file | --hook) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        *) _cluster_words "$(_cluster_help clusterd)" ;;
    esac
}

_cluster_ip() {
    case "$before" in
        --config) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        --nodes) _cluster_words "$(compgen -A hostname)" ;;
        *) _cluster_words "$(_cluster_help cluster-ip)" ;;
    esac
}

_cluster_page() {
    case "$before" in
        --certificate | --certificate-key) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        --state) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        --jobs) _cluster_words "auto slurm gridengine mpirun none" ;;
        *) _cluster_words "$(_cluster_help cluster-page)" ;;
    esac
}

_cluster_complete() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    case "${1##*/}" in
        vcluster) _cluster_vcluster ;;
        cluster-perf) _cluster_perf ;;
        cluster-info) _cluster_info ;;
        cluster-dissect) _cluster_dissect ;;
        cluster-ip) _cluster_ip ;;
        cluster-key) _cluster_key ;;
        cluster-machine) _cluster_machine ;;
        cluster-map) _cluster_map ;;
        cluster-run) _cluster_run ;;
        cluster-status) _cluster_status ;;
        cluster-why) _cluster_why ;;
        clusterd) _cluster_agent ;;
        cluster-page) _cluster_page ;;
    esac
}

complete -o filenames -F _cluster_complete cluster-info cluster-dissect cluster-ip cluster-key cluster-machine cluster-map \
    cluster-perf cluster-run cluster-status cluster-why clusterd cluster-page vcluster
