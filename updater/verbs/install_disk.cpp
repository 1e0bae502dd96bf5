#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "install/to_disk.hpp"
#include "verbs/install_options.hpp"
#include "verbs/report.hpp"

namespace rasupd {
namespace {

struct Options {
  InstallOptions common;
  std::string device, file_system = "ext4", esp_size, boot_size, root_size, var_size;
  bool wipe = false;
};

Result<LayoutRequest> layout_of(const Options& options) {
  LayoutRequest layout;
  layout.file_system = options.file_system;
  if (!options.esp_size.empty()) layout.esp_size = TRY(parse_size(options.esp_size, "--esp-size"));
  if (!options.boot_size.empty()) layout.boot_size = TRY(parse_size(options.boot_size, "--boot-size"));
  if (!options.root_size.empty()) layout.root_size = TRY(parse_size(options.root_size, "--root-size"));
  layout.var_rest = options.var_size == "rest";
  if (!layout.var_rest && !options.var_size.empty()) {
    layout.var_size = TRY(parse_size(options.var_size, "--var-size"));
  }
  return layout;
}

Json partitions_of(const std::vector<Partition>& partitions) {
  Json list = Json::array();
  for (const Partition& one : partitions) {
    list.push_back({{"number", one.number},
                    {"label", one.name},
                    {"type", one.type},
                    {"start", one.start},
                    {"size", one.size},
                    {"filesystem", json_or_null(one.file_system)},
                    {"uuid", json_or_null(one.uuid)},
                    {"mountPoint", json_or_null(one.mount_point)}});
  }
  return list;
}

std::string told(const DiskReport& report) {
  std::string text = fmt::format("{}: bootloader {}\n", report.device, report.bootloader);
  for (const Partition& one : report.partitions) {
    text += fmt::format("  {} {:<12} {:>10}  {:<5} {}\n", one.number, one.name, human_size(one.size),
                        one.file_system, one.mount_point);
  }
  return text;
}

Result<Answer> run(const World& world, const Options& options) {
  DiskRequest request;
  request.install = options.common.request;
  request.install.image = TRY(reference_argument(options.common.image));
  request.device = options.device;
  request.wipe = options.wipe;
  request.bootloader = options.common.bootloader;
  request.layout = TRY(layout_of(options));
  const Settings settings = TRY(load_settings(world.config_root, true));
  DiskReport report = TRY(install_to_disk(world, settings, request));
  for (const std::string& warning : settings.warnings) report.upgrade.warnings.push_back(warning);
  for (const std::string& warning : report.upgrade.warnings) world.progress.note("warning: " + warning);
  Answer answer = answer_of(report.upgrade, false, false);
  (*answer.fields)["device"] = report.device;
  (*answer.fields)["bootloader"] = report.bootloader;
  (*answer.fields)["partitions"] = partitions_of(report.partitions);
  answer.human += told(report);
  return answer;
}

}  // namespace

void add_install_to_disk(CLI::App& install, Selected& selected) {
  auto* verb = install.add_subcommand(
      "to-disk", "Install IMAGE onto the whole DEVICE: partitions, file systems, bootloader");
  auto options = std::make_shared<Options>();
  add_image_argument(*verb, options->common);
  verb->add_option("DEVICE", options->device, "A block device, or an image file whose size is used")
      ->required();
  verb->add_flag("--wipe", options->wipe, "Give up what DEVICE holds, once the image is known to be good");
  verb->add_option("--filesystem", options->file_system, "Of root and /var: ext4, xfs or btrfs")
      ->check(CLI::IsMember({"ext4", "xfs", "btrfs"}));
  verb->add_option("--esp-size", options->esp_size, "EFI system partition (256M)")->type_name("SIZE");
  verb->add_option("--boot-size", options->boot_size,
                   "A /boot of its own, ext4 (1G when GRUB meets another --filesystem)")
      ->type_name("SIZE");
  verb->add_option("--root-size", options->root_size, "Root; all that is left when not given")
      ->type_name("SIZE");
  verb->add_option("--var-size", options->var_size, "A /var of its own; \"rest\" with --root-size")
      ->type_name("SIZE|rest");
  add_install_options(*verb, options->common, {"auto", "grub", "systemd-boot", "none"});
  verb->callback([options, &selected] {
    selected.kind = "InstallToDiskResult";
    selected.needs_sysroot = false;
    selected.run = [options](const World& world) { return run(world, *options); };
  });
}

}  // namespace rasupd
