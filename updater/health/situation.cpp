#include "health/situation.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
#include "bootloader/detect.hpp"
#include "upgrade/attempt.hpp"

namespace rasupd {
namespace {

/// Takes the value, or notes why there is none and that the whole cannot be relied upon.
template <class T>
T taken(Result<T> result, bool& flag, std::vector<std::string>& warnings) {
  if (result) return std::move(*result);
  flag = false;
  warnings.push_back(result.error().message);
  return T{};
}

/// Unreadable is not out of step: in doubt nothing is turned.
void look_at_bootloader(const World& world, const HostState& host, Situation& now) {
  const auto bootloader = boot::detect(world, host.running);
  if (!bootloader) {
    now.counter_readable = false;
    now.warnings.push_back(bootloader.error().message);
    return;
  }
  now.counting = (*bootloader)->counting();
  now.counter = taken((*bootloader)->trial(), now.counter_readable, now.warnings);
  now.in_step = (*bootloader)->in_step().value_or(true);
}

std::string boot_id() {
  const auto id = read_file("/proc/sys/kernel/random/boot_id", 128);
  return id && *id ? std::string(trim(**id)) : "";
}

policy::Counts counts_of(boot::Counting counting) {
  switch (counting) {
    case boot::Counting::tries:
      return policy::Counts::tries;
    case boot::Counting::once:
      return policy::Counts::one_start;
    case boot::Counting::none:
      break;
  }
  return policy::Counts::nothing;
}

}  // namespace

Situation look(const World& world, const HostState& host) {
  Situation now;
  now.state_dir = state_directory_of(world, host);
  now.boot_id = boot_id();
  if (host.booted) {
    now.booted = deployment_id(host.deployments[*host.booted]);
    now.digest = host.deployments[*host.booted].manifest_digest;
  }
  if (host.first) now.first = deployment_id(host.deployments[*host.first]);
  now.record = taken(read_trial(now.state_dir), now.readable, now.warnings);
  now.good = taken(read_good(now.state_dir), now.readable, now.warnings);
  for (const Held& held : taken(read_held(now.state_dir), now.readable, now.warnings)) {
    if (now.record && held.digest == now.record->digest) now.held = held.reason;
  }
  look_at_bootloader(world, host, now);
  return now;
}

void append(std::vector<std::string>& to, std::vector<std::string> more) {
  for (std::string& one : more) to.push_back(std::move(one));
}

policy::BootFacts boot_facts(const Situation& now) {
  policy::BootFacts facts;
  facts.readable = now.readable;
  facts.booted = now.booted;
  facts.first = now.first;
  if (now.good) facts.good = now.good->deployment;
  if (now.record) {
    const bool counted = !now.boot_id.empty() && now.record->last_boot_id == now.boot_id;
    facts.trial =
        policy::PendingTrial{now.record->deployment, now.record->tries, now.record->starts, counted, now.held};
  }
  facts.counter_readable = now.counter_readable;
  if (now.counter) facts.counter = policy::CounterFacts{now.counter->deployment, now.counter->left};
  facts.counts = counts_of(now.counting);
  facts.in_step = now.in_step;
  return facts;
}

policy::CheckFacts check_facts(const Situation& now, bool passed, bool external) {
  policy::CheckFacts facts;
  facts.readable = now.readable;
  facts.on_trial = now.on_trial();
  facts.other_on_trial = now.record && !now.on_trial();
  facts.good_already = now.good && now.good->deployment == now.booted;
  facts.boots_next = now.first == now.booted;
  facts.passed = passed;
  facts.external = external;
  facts.counts = counts_of(now.counting);
  if (now.record) {
    facts.tries = now.record->tries;
    facts.starts = now.record->starts;
    if (now.counter && now.counter->deployment == now.record->deployment) facts.left = now.counter->left;
  }
  return facts;
}

}  // namespace rasupd
