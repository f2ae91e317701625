# What the suites share: a folder, volumes in it, checks that are counted. Sourced by bash.
#
# A suite that is run sets `holdfast` and `suite`, then calls `begin`. Everything it makes lies in
# $work and is gone at the end, also after an interrupt.
# shellcheck shell=bash
: "${suite:?the suite that is run}" "${holdfast:?the command that is tested}"

work=
volume=
region=
keeper=
told_changes=
passed=0
failed=0

say() { echo "$suite: $*" >&2; }

begin() {
    work=$(mktemp -d "/var/tmp/holdfast-$suite.XXXXXX")
    # A socket's path has few bytes.
    chmod 755 "$work"
    # Runs beside each other do not meet: what is at the same place for all has the folder's name.
    volume=suite-$suite-${work##*.}
    volume=${volume,,}
    region=/dev/shm/holdfast/$volume
    trap clean_up EXIT
    trap 'exit 130' INT TERM
}

clean_up() {
    end_volume --force >/dev/null 2>&1 || true
    rm -rf "$work" "$region"
}

hold() { "$holdfast" --config "$work/holdfast.toml" "$@"; }

# A program of crates.io, in the version that is asked for. Prints where it is.
from_crates() { # $1 name, $2 version
    local root
    root=$(realpath -m "${CARGO_TARGET_DIR:-target}/suites")
    scripts/cargo install --quiet --locked --root "$root" --version "$2" "$1" >&2
    echo "$root/bin/$1"
}

# Makes a volume and serves it: its home is $work/home, its mount $work/mount.
serve_volume() { # $1 size of its memory, $2 memory or disk: what acknowledges
    local survive='must_survive = ["process"]' tries
    [ "$2" = memory ] || survive=
    rm -rf "${work:?}/home" "$work/mount" "$work/log" "$region"
    mkdir "$work/home" "$work/mount"
    cat >"$work/holdfast.toml" <<TOML
[keeper]
socket = "$work/control"

[volume.$volume]
home = "$work/home"
mount = "$work/mount"
log = "$work/log"
memory = { medium = "shm", size = "$1", path = "$region" }
$survive
TOML
    hold volume make "$volume" >&2
    serve
}

# Starts the keeper, and waits until the volume is served.
serve() {
    # Not by `hold`: what is signalled later is the keeper, not a shell that waits for it.
    "$holdfast" --config "$work/holdfast.toml" serve 2>>"$work/keeper.log" &
    keeper=$!
    local tries
    for tries in $(seq 400); do
        mountpoint -q "$work/mount" && is_serving && return 0
        kill -0 "$keeper" 2>/dev/null || break
        sleep 0.05
    done
    say "the volume was not served after $tries looks"
    cat "$work/keeper.log" >&2
    return 1
}

# Gives the home back, complete.
end_volume() { # arguments of umount
    [ -n "$keeper" ] || return 0
    local status=0
    hold umount "$@" "$volume" >&2 || status=$?
    kill -TERM "$keeper" 2>/dev/null
    wait "$keeper" 2>/dev/null
    keeper=
    return $status
}

# Whoever serves the volume; nothing while nobody does.
front_end() {
    hold status --json 2>/dev/null | sed -nE 's/.*"front_end_pid": ?([0-9]+).*/\1/p' | head -1
}

is_serving() { hold status --json 2>/dev/null | grep -q '"serving"'; }

# Kills whoever serves the volume, or is about to, soon and then again and again, until this is killed
# itself. Every third kill waits for one that serves: the keeper starts no other after five in a row
# that never did.
kill_again_and_again() { # $1 seconds between two kills, at most
    local pause=0.1 kills=0 pid
    while sleep "$pause"; do
        [ $((kills % 3)) != 0 ] || is_serving || continue
        pid=$(front_end)
        if [ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null; then
            echo "$pid" >>"$work/kills"
            kills=$((kills + 1))
        fi
        pause=$(awk -v most="$1" -v seed="$RANDOM" 'BEGIN { srand(seed); print most * rand() }')
    done
}

# Runs a command while whoever serves the volume is killed again and again. Its status is the
# command's; that nobody was killed is a failure.
over_kills() { # $1 seconds between two kills, at most, then the command
    local killer status=0
    : >"$work/kills"
    kill_again_and_again "$1" &
    killer=$!
    "${@:2}" || status=$?
    kill "$killer" 2>/dev/null || true
    wait "$killer" 2>/dev/null || true
    echo "front ends killed: $(wc -l <"$work/kills")"
    [ -s "$work/kills" ] && return $status
}

# All that a directory has, a line for each name: see tree.py.
tell_tree() { # $1 directory
    /usr/bin/python3 scripts/suites/tree.py "$1"
}

# Gives the home back, which then has what was on the volume: names, bytes, modes, owners, times,
# links, extended attributes and lists. What tells of them must have told of every change to a sample.
give_back() {
    [ -n "$told_changes" ] || /usr/bin/python3 scripts/suites/tree.py --canary "$work" || return
    told_changes=yes
    local told=0
    tell_tree "$work/mount" >"$work/volume.tree" || told=$?
    end_volume || return
    [ "$told" = 0 ] || return
    tell_tree "$work/home" >"$work/home.tree" || return
    [ -s "$work/home.tree" ] && diff "$work/volume.tree" "$work/home.tree"
}

# A check that passes or fails as a whole.
check() { # $1 its name, then the command
    local name=$1 began=$SECONDS
    shift
    if "$@" >"$work/check.log" 2>&1; then
        passed=$((passed + 1))
        say "ok: $name, $((SECONDS - began)) s"
    else
        failed=$((failed + 1))
        say "FAILED: $name, $((SECONDS - began)) s"
        tail -30 "$work/check.log" >&2
    fi
}

# The last line of a suite, and its status.
report() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
}
