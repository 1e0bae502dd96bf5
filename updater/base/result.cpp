#include "base/result.hpp"

#include <cerrno>
#include <cstring>

namespace rasupd {

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::Failed:
      return "Failed";
    case Kind::Usage:
      return "Usage";
    case Kind::Config:
      return "Config";
    case Kind::Offline:
      return "Offline";
    case Kind::Untrusted:
      return "Untrusted";
    case Kind::NoSpace:
      return "NoSpace";
    case Kind::Held:
      return "Held";
    case Kind::Busy:
      return "Busy";
    case Kind::Unsuitable:
      return "Unsuitable";
    case Kind::Boot:
      return "Boot";
    case Kind::Denied:
      return "Denied";
    case Kind::NotFound:
      return "NotFound";
    case Kind::Bug:
      return "Bug";
    case Kind::Cancelled:
      return "Cancelled";
  }
  return "Failed";
}

Kind kind_of_errno(int err) {
  return err == ENOSPC || err == EDQUOT ? Kind::NoSpace : Kind::Failed;
}

tl::unexpected<Error> fail_errno(int err, std::string_view what) {
  return fail(kind_of_errno(err), std::string(what) + ": " + std::strerror(err));
}

}  // namespace rasupd
