#pragma once
// Writing into the new /etc: copies, attributes and removal, each by a directory descriptor and one name in
// it, never through a symlink.

#include <string>

#include "deploy/etc_tree.hpp"

namespace rasupd {

/// Copies a file, symlink, FIFO or device to a name that is free. `node` is the source as read_etc_node()
/// read it; its attributes and time are set on the copy. False when the source vanished or became something
/// else meanwhile; then nothing is left behind. Never a hard link: reflink, else in-kernel copy, else read
/// and write; holes stay.
Result<bool> copy_etc_leaf(int from, const EtcNode& node, int to, const std::string& name);
/// Makes a directory at a free name, mode 0700 until set_etc_attributes().
Result<void> make_etc_directory(int to, const std::string& name);
/// Makes owner, xattrs and mode of `name` exactly these, whatever it has now; the mode last, because chown
/// clears setuid and an access ACL writes the group bits. A security.selinux that is not asked for stays.
Result<void> set_etc_attributes(int directory, const std::string& name, const EtcAttributes& attributes);
Result<void> set_etc_time(int directory, const std::string& name, const struct timespec& modified);
/// Everything in `from` into the empty directory `to`, and `from`'s own attributes.
Result<void> copy_etc_tree(int from, int to);
/// rm -rf of one name; absent is fine.
Result<void> remove_etc_name(int directory, const std::string& name);

}  // namespace rasupd
