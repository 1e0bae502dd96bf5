#pragma once
// What both ways of installing are told on the command line. Each has its file: install.cpp,
// install_disk.cpp.

#include <string>
#include <vector>

#include "install/install.hpp"
#include "verbs/verb.hpp"

namespace rasupd {

struct InstallOptions {
  std::string image, bootloader = "auto";
  InstallRequest request;  ///< its image is filled in from `image` when the verb runs
  bool generic = false;
};

/// The first argument, IMAGE.
void add_image_argument(CLI::App& verb, InstallOptions& options);
/// The options that both share; `bootloaders` are the values --bootloader takes.
void add_install_options(CLI::App& verb, InstallOptions& options,
                         const std::vector<std::string>& bootloaders);

/// Adds `to-disk` to `install`.
void add_install_to_disk(CLI::App& install, Selected& selected);

}  // namespace rasupd
