#pragma once
// Starts tests/support/hostile_registry.py over a small layout of its own, in a temporary directory.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/text.hpp"
#include "fence/hash.hpp"
#include "image/manifest.hpp"

namespace rasupd::fakes {

class HostileRegistry {
 public:
  explicit HostileRegistry(const std::string& content) {
    char name[] = "/tmp/rasupd-hostile.XXXXXX";
    root = ::mkdtemp(name);
    std::filesystem::create_directories(root + "/layout/blobs/sha256");
    blob = add(content, "application/vnd.oci.image.layer.v1.tar");
    const std::string config = "{}";
    const Descriptor c = add(config, "application/vnd.oci.image.config.v1+json");
    const auto json = [](const Descriptor& d, const std::string& more = "") {
      return R"({"mediaType":")" + d.media_type + R"(","digest":")" + d.digest.str() + R"(","size":)" +
             std::to_string(d.size) + more + "}";
    };
    manifest = add(R"({"schemaVersion":2,"mediaType":")" + std::string(kOciManifest) + R"(","config":)" +
                       json(c) + R"(,"layers":[)" + json(blob) + "]}",
                   std::string(kOciManifest));
    write("layout/oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    write("layout/index.json",
          R"({"schemaVersion":2,"manifests":[)" +
              json(manifest, R"(,"annotations":{"org.opencontainers.image.ref.name":"1"})") + "]}");
    start();
    write("etc/containers/registries.conf",
          "[[registry]]\nlocation = \"127.0.0.1:" + port + "\"\ninsecure = true\n");
  }
  ~HostileRegistry() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(root);
  }
  HostileRegistry(const HostileRegistry&) = delete;
  HostileRegistry& operator=(const HostileRegistry&) = delete;

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root + "/" + path).parent_path());
    std::ofstream(root + "/" + path) << text;
  }
  void faults(const std::string& json) const { write("faults.json", json); }
  std::string log() const {
    std::stringstream all;
    all << std::ifstream(root + "/log").rdbuf();
    return all.str();
  }
  std::string reference(const std::string& rest = ":1") const {
    return "127.0.0.1:" + port + "/os/base" + rest;
  }

  std::string root, port;
  Descriptor blob, manifest;

 private:
  Descriptor add(const std::string& content, const std::string& type) const {
    const std::string hex = sha256_hex(as_bytes(content));
    write("layout/blobs/sha256/" + hex, content);
    Descriptor d;
    d.media_type = type;
    d.digest = Digest::of_hex(hex);
    d.size = content.size();
    return d;
  }
  void start() {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], 1);
      const std::string layout = root + "/layout", faults = root + "/faults.json", log = root + "/log";
      ::execl("/usr/bin/python3", "python3", FIXTURES "/../support/hostile_registry.py", "--layout",
              layout.c_str(), "--faults", faults.c_str(), "--log", log.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) port += c;
    ::close(ends[0]);
  }

  pid_t child_ = -1;
};

}  // namespace rasupd::fakes
