// The environment block (GRUB manual, "The GRUB environment block"): a signature line, NAME=VALUE lines, '#' up to
// the size. Only the two names of ours are known; what else is in a block is kept by GRUB, not by us: the file is
// rasupd's.

#include <fmt/format.h>

#include <charconv>

#include "base/text.hpp"
#include "bootloader/grub.hpp"

namespace rasupd::boot::grub {
namespace {

constexpr std::string_view kSignature = "# GRUB Environment Block\n";

tl::unexpected<Error> damaged(std::string_view why) {
  return fail(Kind::Boot, fmt::format("boot/grub/grubenv: {}", why),
              "the next start takes the deployment that was last good; `rasupd rollback` or a new upgrade writes it "
              "anew");
}

}  // namespace

std::string environment_text(const std::optional<Trial>& trial) {
  std::string block(kSignature);
  if (trial) block += fmt::format("rasupd_id={}\nrasupd_left={}\n", trial->deployment, trial->left);
  // Within the first 512 bytes: a sector is written whole or not at all.
  block.resize(kEnvironmentBytes, '#');
  return block;
}

Result<std::optional<Trial>> parse_environment(std::string_view block) {
  if (block.size() != kEnvironmentBytes || !block.starts_with(kSignature)) return damaged("not an environment block");
  Trial trial;
  std::string left;
  for (const std::string& line : split(block.substr(kSignature.size()), '\n')) {
    if (line.starts_with("rasupd_id=")) trial.deployment = line.substr(10);
    if (line.starts_with("rasupd_left=")) left = line.substr(12);
  }
  if (trial.deployment.empty() && left.empty()) return std::optional<Trial>{};
  const auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), trial.left);
  if (trial.deployment.empty() || error != std::errc() || end != left.data() + left.size() || trial.left > 9) {
    return damaged("half a counter");
  }
  return std::optional<Trial>{std::move(trial)};
}

}  // namespace rasupd::boot::grub
