#include "install/to_disk.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/failpoint.hpp"
#include "base/files.hpp"
#include "base/progress.hpp"
#include "base/text.hpp"
#include "bootloader/grub.hpp"
#include "image/platform.hpp"
#include "install/block_device.hpp"
#include "install/disk_boot.hpp"
#include "install/esp.hpp"
#include "install/filesystem.hpp"

namespace rasupd {
namespace {

/// GRUB replays no journal and writes its counter into a file in place: it gets an ext4 /boot when root is of
/// another kind.
constexpr std::uint64_t kBootBesideOther = 1024 * kMiB;

/// Everything that is decided before the device is touched.
struct Plan {
  const DiskRequest& request;
  InstallRequest install;
  BlockDevice device;
  DiskLoader loader = DiskLoader::none;
  std::vector<Partition> partitions;
  GrubImages grub;

  const Partition* find(PartitionUse use) const { return find_partition(partitions, use); }
};

/// A half-made disk: its windows and mounts, undone in the reverse order of their making.
struct Disk {
  std::vector<std::pair<PartitionUse, LoopWindow>> windows;
  std::optional<Mount> esp_memory;  ///< outlives `mounts`: it is copied when they are gone
  std::vector<Mount> mounts;
  std::string root, esp_tree;

  ~Disk() {
    while (!mounts.empty()) mounts.pop_back();
  }
  const LoopWindow& window(PartitionUse use) const {
    return std::find_if(windows.begin(), windows.end(), [&](const auto& one) { return one.first == use; })
        ->second;
  }
};

Result<void> refuse_signatures(const World& world, const BlockDevice& device) {
  const auto found = TRY(device.signatures(world.runner));
  if (found.empty()) return {};
  return fail(Kind::Usage, device.path() + " holds something: " + printable(join(found, ", ")),
              "--wipe gives up all it holds");
}

Result<void> require_disk_tools(const Plan& plan) {
  std::vector<Tool> tools{{"wipefs", "util-linux"}, {"sgdisk", "gdisk"}, {"mcopy", "mtools"}};
  for (const Partition& one : plan.partitions) {
    if (!one.file_system.empty()) tools.push_back(tool_of_file_system(one.file_system));
  }
  if (plan.loader == DiskLoader::grub) tools.push_back({"grub-mkimage", "grub-common"});
  return require_tools(tools);
}

Result<Plan> make_plan(const World& world, const DiskRequest& request) {
  TRY(check_install_request(request.install));
  LayoutRequest layout = request.layout;
  layout.architecture =
      request.install.architecture.empty() ? TRY(host_architecture()) : request.install.architecture;
  BlockDevice device = TRY(BlockDevice::open(request.device));
  Plan plan{request, request.install, std::move(device), DiskLoader::none, {}, {}};
  TRY(require_tools({{"wipefs", "util-linux"}}));
  if (!request.wipe) TRY(refuse_signatures(world, plan.device));
  plan.install.architecture = layout.architecture;
  plan.loader = TRY(choose_loader(request.bootloader, layout.architecture));
  if (plan.loader == DiskLoader::grub && layout.file_system != "ext4" && !layout.boot_size) {
    layout.boot_size = kBootBesideOther;
  }
  plan.partitions = TRY(plan_layout(layout, plan.device.size()).within(request.device));
  TRY(require_disk_tools(plan));
  for (Partition& one : plan.partitions) {
    if (!one.file_system.empty()) one.uuid = TRY(new_uuid(one.file_system));
  }
  std::vector<std::string>& kargs = plan.install.kargs;
  const bool own_root =
      std::any_of(kargs.begin(), kargs.end(), [](const auto& k) { return k.starts_with("root="); });
  if (!own_root) kargs.insert(kargs.begin(), {"root=UUID=" + plan.find(PartitionUse::root)->uuid, "rw"});
  return plan;
}

/// The same estimate as before an import, against a file system that is not there yet: a tenth is its own.
Result<void> check_room(const Settings& settings, const Plan& plan, const VerifiedImage& image) {
  const std::uint64_t needed = expanded_size(image.candidate.image.manifest) + settings.reserve;
  const std::uint64_t usable = plan.find(PartitionUse::root)->size / 10 * 9;
  if (needed <= usable) return {};
  return fail(Kind::NoSpace,
              fmt::format("{}: the root partition offers about {}, the image needs about {}",
                          plan.device.path(), human_size(usable), human_size(needed)),
              "take a larger disk, or a larger --root-size");
}

Result<void> partition(const World& world, const Plan& plan) {
  const std::string& path = plan.device.path();
  TRY(run_tool(world.runner, {"wipefs", "--all", "--force", path}));
  TRY(run_tool(world.runner, {"sgdisk", "--zap-all", path}));  // also the table at the end of the disk
  TRY(failpoint("disk-zapped"));
  std::vector<std::string> words{"sgdisk"};
  for (std::string& word : sgdisk_arguments(plan.partitions)) words.push_back(std::move(word));
  words.push_back(path);
  TRY(run_tool(world.runner, words));
  return {};
}

Result<void> make_file_systems(const World& world, const Plan& plan, Disk& disk) {
  for (const Partition& one : plan.partitions) {
    if (one.file_system.empty()) continue;
    LoopWindow window = TRY(LoopWindow::attach(plan.device, one.start, one.size));
    TRY(make_file_system(world.runner, one, window.path()));
    disk.windows.emplace_back(one.use, std::move(window));
    TRY(world.check_stop());
  }
  return {};
}

Result<void> mount_one(const Plan& plan, Disk& disk, PartitionUse use, const std::string& where) {
  const Partition* one = plan.find(use);
  if (!one) return {};
  Mount mount = TRY(Mount::make(disk.window(use).path(), where, one->file_system));
  disk.mounts.push_back(std::move(mount));
  return {};
}

/// The new root with what has file systems of its own in place. The ESP's place is taken by a directory in
/// memory, whose content goes onto it at the end.
Result<void> mount_all(const World& there, const Plan& plan, Disk& disk) {
  TRY(mount_one(plan, disk, PartitionUse::root, disk.root));
  TRY(mount_one(plan, disk, PartitionUse::boot, path_join(disk.root, "boot")));
  // As large as the ESP without its tables (two of four bytes a cluster), so that what does not fit is known
  // in time.
  const std::string size = fmt::format("mode=0755,size={}", plan.find(PartitionUse::esp)->size / 100 * 97);
  disk.esp_memory.emplace(TRY(Mount::make("tmpfs", disk.esp_tree, "tmpfs", size)));
  Mount esp = TRY(Mount::make(disk.esp_tree, path_join(disk.root, "boot/efi"), "bind"));
  disk.mounts.push_back(std::move(esp));
  TRY(init_sysroot(there, plan.install.stateroot));
  const std::string var = path_join(disk.root, "ostree/deploy/" + plan.install.stateroot + "/var");
  TRY(mount_one(plan, disk, PartitionUse::var, var));
  // The image's /var goes only into an empty one; e2fsck makes it again when it needs it.
  ::rmdir(path_join(var, "lost+found").c_str());
  return {};
}

/// What the bootloader needs on the disk before the first deployment is written: by it, it is recognised.
Result<void> prepare_loader(const World& there, const Plan& plan, const Disk& disk,
                            const std::string& commit) {
  if (plan.loader == DiskLoader::grub) {
    TRY(boot::grub::write_static_files(there.sysroot, plan.find(PartitionUse::boot) != nullptr));
    return write_grub_images(plan.grub, plan.device, plan.partitions, disk.esp_tree);
  }
  if (plan.loader == DiskLoader::none) return {};
  const Repo repo = TRY(Repo::open(path_join(there.sysroot, "ostree/repo")));
  return put_systemd_boot(repo, commit, plan.install.architecture, disk.esp_tree);
}

/// Where the installed system mounts the ESP: a read-only root cannot get a directory later.
std::string esp_mount_point(const std::string& deployment) {
  return exists(path_join(deployment, "efi")) ? "/efi" : "/boot/efi";
}

Result<void> finish(const World& world, Plan& plan, Disk& disk) {
  while (!disk.mounts.empty()) {
    TRY(disk.mounts.back().end());
    disk.mounts.pop_back();
  }
  TRY(fill_esp(world.runner, disk.window(PartitionUse::esp).path(), disk.esp_tree));
  for (const auto& window : disk.windows) TRY(window.second.sync());
  disk.windows.clear();
  return plan.device.settle();
}

Result<void> write_disk(const World& world, const Settings& settings, Plan& plan, VerifiedImage& image,
                        const std::string& work) {
  Steps steps(world.progress, "disk", "Preparing " + plan.device.path(),
              {"partitioning", "making file systems", "installing", "writing the bootloader"});
  Disk disk;
  disk.root = path_join(work, "root");
  disk.esp_tree = path_join(work, "esp");
  World there = world;
  there.sysroot = disk.root;
  steps.begin(0);
  TRY(partition(world, plan));
  steps.begin(1);
  TRY(make_file_systems(world, plan, disk));
  TRY(mount_all(there, plan, disk));
  TRY(failpoint("disk-mounted"));
  steps.begin(2);
  const auto before_deploy = [&](const std::string& commit) {
    return prepare_loader(there, plan, disk, commit);
  };
  const std::string directory =
      TRY(install_on_fresh_root(there, settings, plan.install, image, before_deploy));
  const std::string deployment = path_join(disk.root, directory), esp = esp_mount_point(deployment);
  for (Partition& one : plan.partitions) {
    if (one.use == PartitionUse::esp) one.mount_point = esp;
  }
  TRY(write_fstab(deployment, fstab_lines(plan.partitions, esp)));
  TRY(failpoint("disk-installed"));
  steps.begin(3);
  TRY(finish(world, plan, disk));
  steps.begin(4);
  return {};
}

}  // namespace

Result<DiskReport> install_to_disk(const World& world, const Settings& settings, const DiskRequest& request) {
  Plan plan = TRY(make_plan(world, request));
  TRY(enter_private_mounts());
  const WorkDirectory work = TRY(WorkDirectory::make());
  if (plan.loader == DiskLoader::grub) {
    plan.grub = TRY(make_grub_images(world.runner, plan.install.architecture, work.path(), plan.partitions));
  }
  VerifiedImage image = TRY(verify_for_install(world, settings, plan.install));
  TRY(check_room(settings, plan, image));
  TRY(failpoint("disk-verified"));
  TRY(world.check_stop());
  if (auto done = write_disk(world, settings, plan, image, work.path()); !done) {
    Error error = std::move(done.error());
    if (error.kind == Kind::Cancelled) error.message = "interrupted";
    error.message += "; what " + request.device + " held is gone, and it holds no whole system";
    if (error.hint.empty()) error.hint = "run it again with --wipe";
    error.changed = true;
    return fail(std::move(error));
  }
  for (std::string& warning : plan.grub.warnings) image.report.warnings.push_back(std::move(warning));
  return DiskReport{std::move(image.report), request.device, std::string(loader_name(plan.loader)),
                    std::move(plan.partitions)};
}

}  // namespace rasupd
