// The deploy transaction by hand, for tests that run inside fake_boot.sh: deploy_driver SYSROOT WORD…
// Prints what happened, one fact a line; the exit code is the error's kind.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "deploy/deploy.hpp"
#include "fakes/fakes.hpp"

namespace rasupd {
namespace {

void print_index(const char* name, const std::optional<std::size_t>& index) {
  fmt::print("{} {}\n", name, index ? std::to_string(*index) : "-");
}

void print_state(const HostState& state) {
  fmt::print("running {}\n", state.running);
  print_index("booted", state.booted);
  print_index("staged", state.staged);
  print_index("first", state.first);
  print_index("rollback", state.rollback);
  fmt::print("queued {}\n", state.rollback_queued);
  for (const Deployment& d : state.deployments) {
    fmt::print("deployment {} {}{}{}{}[{}]\n", d.version, d.booted ? "booted " : "",
               d.staged ? "staged " : "", d.pinned ? "pinned " : "", d.locked ? "locked " : "",
               join(d.kargs, " "));
  }
  for (const std::string& problem : state.problems) fmt::print("problem {}\n", problem);
}

Result<void> stage(LockedHost& host, const std::string& commit, bool locked) {
  NewDeployment what;
  what.commit = commit;
  what.tracked = TRY(Reference::parse("registry.example/os:stable"));
  what.locked = locked;
  const auto done = TRY(deploy_image(host, what));
  fmt::print("staged {}\n", done.staged);
  return {};
}

Result<void> run(const World& world, const std::vector<std::string>& words) {
  if (words[0] == "state") {
    print_state(TRY(read_host(world)));
    return {};
  }
  LockedHost host = TRY(LockedHost::lock(world));
  if (words[0] == "stage") return stage(host, words[1], words.size() > 2);
  if (words[0] == "finalize") {
    const auto finalized = TRY(finalize_staged(host, TrialRequest{}));
    fmt::print("finalized {}\n", finalized.has_value());
  } else if (words[0] == "rollback") {
    const auto done = TRY(rollback(host));
    fmt::print("next {} left {} dropped {}\n", done.next.version, done.left ? done.left->version : "-",
               done.dropped_staged ? done.dropped_staged->version : "-");
  } else if (words[0] == "unstage") {
    fmt::print("unstaged {}\n", TRY(unstage(host)));
  } else if (words[0] == "lock" || words[0] == "unlock") {
    TRY(set_staged_locked(host, words[0] == "lock"));
  } else if (words[0] == "clean") {
    for (const Deployment& gone : TRY(clean_deployments(host, false)))
      fmt::print("removed {}\n", gone.version);
  } else if (words[0] == "pin") {
    TRY(set_pinned(host, static_cast<std::size_t>(std::stoul(words[1])), true));
  } else if (words[0] == "plan") {
    const auto plan = TRY(plan_etc_for(host, words[1]));
    for (const EtcConflict& conflict : plan.conflicts) fmt::print("conflict {}\n", conflict.path);
    for (const EtcChange& change : plan.changes) fmt::print("change {} {}\n", change.code, change.path);
  } else {
    return fail(Kind::Usage, "unknown word " + words[0]);
  }
  return {};
}

}  // namespace
}  // namespace rasupd

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  rasupd::fakes::FakeClock clock;
  rasupd::fakes::FakeRunner runner;
  rasupd::fakes::NullProgress progress;
  const rasupd::World world{.sysroot = argv[1], .clock = clock, .runner = runner, .progress = progress};
  const auto done = rasupd::run(world, {argv + 2, argv + argc});
  if (done) return 0;
  std::fprintf(stderr, "error %s: %s\n", std::string(rasupd::kind_name(done.error().kind)).c_str(),
               done.error().message.c_str());
  return static_cast<int>(done.error().kind);
}
