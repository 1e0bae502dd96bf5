#include "install/install.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "verbs/install_options.hpp"
#include "verbs/report.hpp"
#include "verbs/verb.hpp"

namespace rasupd {
namespace {

struct Options {
  std::string root;
  InstallOptions common;
};

Result<Answer> run(const World& world, const Options& options) {
  InstallRequest request = options.common.request;
  request.bootloader = options.common.bootloader;
  request.image = TRY(reference_argument(options.common.image));
  const Settings settings = TRY(load_settings(world.config_root, true));
  UpgradeReport report = TRY(install_to_filesystem(world, settings, request));
  if (request.bootloader == "auto") {
    report.warnings.push_back("no bootloader was asked for: boot entries only (--bootloader names one)");
  }
  for (const std::string& warning : settings.warnings) report.warnings.push_back(warning);
  for (const std::string& warning : report.warnings) world.progress.note("warning: " + warning);
  return answer_of(report, false, false);
}

void add_to_filesystem(CLI::App& install, Selected& selected) {
  auto* verb = install.add_subcommand("to-filesystem", "Install IMAGE into the mounted file system ROOT");
  auto options = std::make_shared<Options>();
  add_image_argument(*verb, options->common);
  verb->add_option("ROOT", options->root, "An empty directory or mounted file system")->required();
  verb->add_flag("--replace", options->common.request.replace,
                 "Remove what ROOT holds, once the image is known to be good");
  add_install_options(*verb, options->common,
                      {"auto", "grub", "systemd-boot", "extlinux", "uboot", "rpi", "none"});
  verb->callback([options, &selected] {
    selected.kind = "InstallToFilesystemResult";
    selected.sysroot = options->root;
    selected.needs_sysroot = false;
    selected.run = [options](const World& world) { return run(world, *options); };
  });
}

}  // namespace

void add_image_argument(CLI::App& verb, InstallOptions& options) {
  verb.fallthrough();
  verb.add_option("IMAGE", options.image,
                  "HOST/REPO[:TAG][@DIGEST], oci:PATH[:TAG] or oci-archive:PATH[:TAG]")
      ->required();
}

void add_install_options(CLI::App& verb, InstallOptions& options,
                         const std::vector<std::string>& bootloaders) {
  std::string listed;
  for (const std::string& name : bootloaders) listed += (listed.empty() ? "" : ", ") + name;
  verb.add_option("--arch", options.request.architecture, "Install for this architecture (amd64, arm64, …)");
  verb.add_option("--karg", options.request.kargs, "Kernel argument; may be repeated")->type_name("K[=V]");
  verb.add_option("--stateroot", options.request.stateroot, "Name of the stateroot");
  verb.add_option("--bootloader", options.bootloader, listed)->check(CLI::IsMember(bootloaders));
  verb.add_flag("--generic-image", options.generic,
                "Accepted: nothing of this host is written into the system");
}

void add_install(CLI::App& app, Selected& selected) {
  auto* install = app.add_subcommand("install", "First installation");
  install->fallthrough();
  install->require_subcommand(1);
  add_to_filesystem(*install, selected);
  add_install_to_disk(*install, selected);
}

}  // namespace rasupd
