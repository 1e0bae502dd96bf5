// systemd's journal by its native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/): one datagram of
// NAME=value lines. Values here have no line breaks, so its binary form is not needed.

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "base/handle.hpp"
#include "base/text.hpp"
#include "health/situation.hpp"

namespace rasupd {

void announce(const char* message_id, const std::string& text) {
  const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, "/run/systemd/journal/socket");
  const std::string message = "MESSAGE=rasupd: " + printable(text, 1000) +
                              "\nPRIORITY=4\nSYSLOG_IDENTIFIER=rasupd\nMESSAGE_ID=" + message_id + "\n";
  (void)::sendto(fd.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

}  // namespace rasupd
