#pragma once
// What the sysroot*.cpp files share. Private to the fence; libostree's types are only named here.

#include <memory>
#include <string>
#include <vector>

#include "fence/gerror.hpp"
#include "fence/sysroot.hpp"

typedef struct OstreeSysroot OstreeSysroot;
typedef struct _OstreeDeployment OstreeDeployment;
typedef struct _GError GError;

namespace rasupd {

void unref_object(void* object) noexcept;
struct Unref {
  void operator()(void* object) const noexcept { unref_object(object); }
};

struct Sysroot::Body {
  std::unique_ptr<OstreeSysroot, Unref> sysroot;
  /// Deployed but not yet among the entries, or dropped from them by a write whose outcome may be taken back.
  std::vector<std::unique_ptr<OstreeDeployment, Unref>> fresh;
  std::string path;
  bool locked = false;
  ~Body();

  std::string directory_of(OstreeDeployment* deployment) const;
  /// Of the loaded list or of `fresh`; null when there is none.
  OstreeDeployment* find(const std::string& directory) const;
  /// References to all of them.
  std::vector<std::unique_ptr<OstreeDeployment, Unref>> all() const;
};

}  // namespace rasupd
