// Operations that failed. The entry belongs to the application and has grown twice in libfabric's
// life: what may be written depends on the version the fabric was opened for.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "api/cq.h"
#include "api/errno_map.h"

namespace cluster::api {
namespace {

constexpr std::uint32_t kSizedDataVersion = FI_VERSION(1, 5);  ///< err_data_size is there
constexpr std::uint32_t kSourceVersion = FI_VERSION(1, 20);    ///< src_addr is there, after the rest

static_assert(offsetof(fi_cq_err_entry, err_data_size) == 72);

}  // namespace

ssize_t Cq::read_error(fi_cq_err_entry* entry) {
  if (queue_.empty() || due()) progress_.poll();
  protocol::Completion failed;
  const std::size_t taken = queue_.drain(
      1, [](const protocol::Completion& completion) { return completion.status != Status::ok; },
      [&](const protocol::Completion& completion) { failed = completion; });
  if (taken == 0) return -FI_EAGAIN;

  const std::uint32_t version = domain_->fabric().api_version;
  entry->op_context = failed.context;
  entry->flags = flags_with_data(failed);
  entry->len = failed.length;
  entry->buf = failed.buffer;
  entry->data = failed.data;
  entry->tag = failed.tag;
  entry->olen = failed.lost;
  entry->err = fi_errno_of(failed.status);
  entry->prov_errno = static_cast<int>(failed.status);
  const std::lock_guard guard(error_lock_);
  error_ = failed.status;
  error_peer_ = failed.peer;
  describe_peer(failed.peer, *entry, version >= kSizedDataVersion);
  if (version >= kSourceVersion) {
    std::memcpy(reinterpret_cast<std::byte*>(entry) + sizeof(fi_cq_err_entry), &failed.source,
                sizeof failed.source);
  }
  return 1;
}

/// err_data is the socket address of the peer, in a buffer of the application's or of ours.
void Cq::describe_peer(const SocketAddress& peer, fi_cq_err_entry& entry, bool sized) {
  const std::size_t size = peer.to(error_data_);
  if (sized && entry.err_data_size > 0) {
    const bool fits = entry.err_data != nullptr && size <= entry.err_data_size;
    if (fits && size > 0) std::memcpy(entry.err_data, &error_data_, size);
    entry.err_data_size = fits ? size : 0;
    return;
  }
  entry.err_data = size > 0 ? &error_data_ : nullptr;
  if (sized) entry.err_data_size = size;
}

/// What err_data points to has no size here, so the peer's name comes from our own memory: it is
/// told if the error asked about is of the kind that was read last.
const char* Cq::error_text(int provider_error, char* buffer, std::size_t size) {
  const std::lock_guard guard(error_lock_);
  const auto status = static_cast<Status>(provider_error);
  std::string peer;
  try {
    if (status == error_ && !error_peer_.empty()) peer = ": " + error_peer_.text();
  } catch (const std::bad_alloc&) {
    peer.clear();
  }
  const bool ours = buffer == nullptr || size == 0;
  char* text = ours ? error_text_ : buffer;
  std::snprintf(text, ours ? sizeof error_text_ : size, "%s%s", describe(status), peer.c_str());
  return text;
}

}  // namespace cluster::api
