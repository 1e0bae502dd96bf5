#include "policy/verdict.hpp"

namespace rasupd::policy {
namespace {

BootVerdict without_trial(const BootFacts& f) {
  if (!f.counter_readable) return {AtBoot::keep, false, "the bootloader's counter cannot be read"};
  if (f.counter) return {AtBoot::clear, false, ""};
  return {};
}

/// Booted something else while the trial is still what boots next: did the bootloader give it up?
BootVerdict beside_the_trial(const BootFacts& f) {
  const PendingTrial& trial = *f.trial;
  const BootVerdict failed{AtBoot::fell_back, false, kBootFailed};
  if (!f.counter_readable) return {AtBoot::keep, false, "the bootloader's counter cannot be read"};
  const bool ours = f.counter && f.counter->deployment == trial.deployment;
  // The entries had turned when power was cut, and what the bootloader reads had not: it never saw the trial.
  if (!ours && !f.in_step && trial.starts == 0) return {AtBoot::interrupted, false, ""};
  if (f.counts == Counts::nothing) {
    if (trial.starts >= trial.tries) return failed;
    return {AtBoot::keep, false, "another entry was chosen and the trial has starts left"};
  }
  if (!ours) {
    return {AtBoot::keep, false, "the bootloader has no counter for the deployment on trial"};
  }
  if (f.counter->left == 0) return failed;
  return {AtBoot::keep, false, "another entry was chosen and the trial has starts left"};
}

/// The verdict against it was on its way: its digest is held.
BootVerdict finish_bad(const BootFacts& f) {
  const bool runs = f.booted == f.trial->deployment;
  return {runs ? AtBoot::go_back : AtBoot::fell_back, false, f.trial->held};
}

}  // namespace

bool ends_a_trial(const std::string& held_reason) {
  return held_reason == kBootFailed || held_reason == kHealthFailed || held_reason == kMarkedBad;
}

BootVerdict at_boot(const BootFacts& f) {
  if (!f.readable || f.booted.empty() || f.first.empty()) {
    return {AtBoot::keep, false, "the state of this machine cannot be read whole"};
  }
  if (!f.trial) return without_trial(f);
  const PendingTrial& trial = *f.trial;
  const bool runs = f.booted == trial.deployment, next = f.first == trial.deployment;
  if (f.good == trial.deployment) return {AtBoot::finish_good, false, ""};
  if (ends_a_trial(trial.held)) return finish_bad(f);
  if (!trial.held.empty() && !next) return {AtBoot::forget, false, ""};  // a manual rollback
  if (runs) return {AtBoot::on_trial, !trial.counted, ""};
  if (!next) return {trial.starts == 0 ? AtBoot::interrupted : AtBoot::forget, false, ""};
  return beside_the_trial(f);
}

AfterChecks after_checks(const CheckFacts& f) {
  if (!f.readable || !f.on_trial) {
    if (!f.passed) return AfterChecks::warn;
    const bool settled = !f.readable || f.other_on_trial || f.good_already || f.external || !f.boots_next;
    return settled ? AfterChecks::nothing : AfterChecks::mark_good;
  }
  if (f.passed) return f.external ? AfterChecks::wait : AfterChecks::mark_good;
  // A bootloader that counts is the authority; where it does not, or its counter is gone, our own count
  // bounds it.
  const bool more = f.counts == Counts::tries && f.left ? *f.left > 0 : f.starts < f.tries;
  return more ? AfterChecks::reboot : AfterChecks::go_back;
}

}  // namespace rasupd::policy
