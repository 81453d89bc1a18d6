# Sourced by the lists: runs one step after the other, goes on after a failure, and ends with what failed.
set -uo pipefail
failed=()

step() {
  local from=$SECONDS
  printf '\n=== %s\n' "$*"
  if "$@"; then
    printf '=== passed after %s s: %s\n' $((SECONDS - from)) "$*"
  else
    failed+=("$*")
    printf '=== FAILED after %s s: %s\n' $((SECONDS - from)) "$*"
  fi
}

# Installs packages of Debian where that needs no password. Elsewhere, the test that lacks a program says how to install it.
debian_packages() {
  command -v apt-get >/dev/null || return 0
  local missing
  missing=$(dpkg-query --show --showformat '' "$@" 2>&1 | sed -n 's/.*no packages found matching //p')
  [ -n "$missing" ] || return 0
  local root=()
  [ "$(id -u)" = 0 ] || root=(sudo -n)
  # RUNLEVEL and SYSTEMD_OFFLINE keep a package from starting the service that it brings.
  root+=(env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 SYSTEMD_OFFLINE=1)
  "${root[@]}" apt-get update -qq && "${root[@]}" apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

ends() {
  if [ ${#failed[@]} -gt 0 ]; then
    printf '\nFAILED after %s s:\n' "$SECONDS"
    printf '  %s\n' "${failed[@]}"
    exit 1
  fi
  printf '\nall passed after %s s\n' "$SECONDS"
}
