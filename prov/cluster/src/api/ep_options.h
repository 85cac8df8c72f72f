// The options of an endpoint: capabilities, limits, sizes and operation flags. Their first values come from
// fi_info. fi_setopt changes limits and sizes, and FI_SETOPSFLAG changes operation flags. This class
// translates the flags into the form that operations need.
//
// libfabric forbids such changes while other threads use the endpoint, so this class has no lock.
#pragma once

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "protocol/ops.h"

namespace cluster::api {

/// Endpoint options that libfabric added after 1.17. They are defined here because the provider is compiled
/// with the headers of 1.17. Programs that are built with newer headers use these options. The values are
/// those of libfabric 2.x.
namespace compat {
inline constexpr int kOptionMaxMessageSize = 12;
inline constexpr int kOptionMaxTaggedSize = 13;
inline constexpr int kOptionMaxRmaSize = 14;
inline constexpr int kOptionMaxAtomicSize = 15;
inline constexpr int kOptionInjectMessageSize = 16;
inline constexpr int kOptionInjectTaggedSize = 17;
inline constexpr int kOptionInjectRmaSize = 18;
inline constexpr int kOptionInjectAtomicSize = 19;
}  // namespace compat

/// The operation flags of transmits, in the form that operations need. The endpoint's flags are translated
/// once, when they are set. So a call without flags, such as fi_send, translates nothing.
struct TxFlags {
  // The first four members have the same order as in protocol::SendOp. So the compiler copies them together.
  bool inject = false;
  bool report = true;
  bool more = false;
  bool fence = false;
  protocol::CompletionLevel completion_level = protocol::CompletionLevel::transmit;
  bool has_data = false;
};

/// Flags that data operations do not support. A call with FI_TRIGGER may still become a triggered operation
/// (trigger_or_refuse.h). FI_MATCH_COMPLETE is supported only for messages to a single peer
/// (Endpoint::learns_of_matches).
inline constexpr std::uint64_t kMessageFlagsUnsupported = FI_COMMIT_COMPLETE | FI_TRIGGER;
inline constexpr std::uint64_t kTxFlagsUnsupported = kMessageFlagsUnsupported | FI_MATCH_COMPLETE;
inline constexpr std::uint64_t kRxFlagsUnsupported = FI_TRIGGER;

/// Translates operation flags. `selective`: the queue was bound with FI_SELECTIVE_COMPLETION. If the flags
/// contain several completion levels, the strongest applies. If they contain none, FI_TRANSMIT_COMPLETE
/// applies.
inline TxFlags tx_flags(std::uint64_t flags, bool selective) {
  TxFlags result;
  if (flags & FI_MATCH_COMPLETE) {
    result.completion_level = protocol::CompletionLevel::match;
  } else if (flags & FI_DELIVERY_COMPLETE) {
    result.completion_level = protocol::CompletionLevel::delivery;
  } else if ((flags & (FI_TRANSMIT_COMPLETE | FI_INJECT_COMPLETE)) == FI_INJECT_COMPLETE) {
    result.completion_level = protocol::CompletionLevel::inject;
  }
  result.report = !selective || (flags & FI_COMPLETION);
  result.inject = flags & FI_INJECT;
  result.has_data = flags & FI_REMOTE_CQ_DATA;
  result.more = flags & FI_MORE;
  result.fence = flags & FI_FENCE;
  return result;
}

/// The properties of the bound queues and counters that affect the endpoint's operations.
struct CompletionMode {
  /// True if only operations with FI_COMPLETION report their success to the transmit queue.
  bool tx_selective = false;
  bool rx_selective = false;
  bool counts_sends = false;  ///< true if a counter for sends (FI_SEND) is bound
};

/// Implements fi_getopt of FI_OPT_CM_DATA_SIZE.
int write_cm_data_size(void* value, std::size_t* size);

class EpOptions {
 public:
  struct Limits {
    std::size_t max_size;
    std::size_t inject_size;

    /// Returns 0, or a negative libfabric error if `length` is too long for the operation or, with `inject`,
    /// for an injected message.
    ssize_t check(std::size_t length, bool inject) const {
      if (length <= (inject ? inject_size : max_size)) [[likely]]
        return 0;
      return inject ? -FI_EINVAL : -FI_EMSGSIZE;
    }
  };
  enum class Operation : std::uint8_t { msg, tagged, rma, atomic };

  explicit EpOptions(const fi_info& info);

  /// Returns 0 if an endpoint can be opened with this fi_info, else a negative libfabric error.
  static int check(const fi_info& info);

  /// Returns true for an FI_EP_MSG endpoint.
  bool connects() const { return connects_; }
  int get_option(int name, void* value, std::size_t* size) const;
  /// Implements fi_setopt. Limits and sizes can only be reduced. FI_OPT_MIN_MULTI_RECV can have any value.
  int set_option(int name, const void* value, std::size_t size);
  /// Implement FI_GETOPSFLAG and FI_SETOPSFLAG, which read or replace the operation flags of one direction.
  /// FI_TRANSMIT or FI_RECV in `flags` selects the direction. FI_TRIGGER is accepted among the new flags only
  /// if the endpoint has the capability FI_TRIGGER.
  int get_op_flags(std::uint64_t* flags) const;
  int set_op_flags(const std::uint64_t* flags);
  void set_completion_mode(const CompletionMode& mode);

  // The following functions are called for every operation.
  const TxFlags& tx_flags() const { return tx_flags_; }
  TxFlags tx_flags(std::uint64_t flags) const { return api::tx_flags(flags, mode_.tx_selective); }
  const TxFlags& inject_flags() const { return inject_flags_; }
  /// Returns a length in bytes. A shorter message that is sent without flags may take the fast lane
  /// (shm/fast_lane.h) or the frame lane (reliability/frame_lane.h). Returns 0 if the endpoint's flags ask
  /// for something that these lanes do not support.
  std::size_t fast_send_end() const { return fast_send_end_; }
  std::size_t fast_inject_end() const { return fast_inject_end_; }
  /// Return the length of the longest write or read without flags that may take the access lane
  /// (shm/access_lane.h). Return 0 if none may.
  std::size_t fast_write_max() const { return fast_write_max_; }
  std::size_t fast_inject_write_max() const { return fast_inject_write_max_; }
  std::size_t fast_read_max() const { return fast_read_max_; }
  bool report_receives() const { return report_receives_; }
  bool report_receive(std::uint64_t flags) const { return !mode_.rx_selective || (flags & FI_COMPLETION); }
  /// Returns the value of FI_OPT_MIN_MULTI_RECV if `flags` contain FI_MULTI_RECV, else 0.
  std::size_t min_multi_recv(std::uint64_t flags) const {
    return flags & FI_MULTI_RECV ? min_multi_recv_ : 0;
  }
  std::size_t default_min_multi_recv() const { return min_multi_recv(rx_op_flags_); }
  /// Returns the source from which a receive accepts messages: `address` if the endpoint directs receives of
  /// this kind, else any source.
  template <bool tagged>
  std::uint64_t source(fi_addr_t address) const {
    return address | (tagged ? tagged_source_mask_ : source_mask_);
  }
  std::uint64_t tx_op_flags() const { return tx_op_flags_; }
  std::uint64_t rx_op_flags() const { return rx_op_flags_; }
  /// Returns true if receives of this kind must name their source (FI_EXACT_DIRECTED_RECV).
  bool wants_exact_source(bool tagged) const;
  /// Returns true if receives of this kind may have FI_MULTI_RECV.
  bool takes_multi_recv(bool tagged) const;
  /// Returns true if receives of this kind need the functions of special_ops.h.
  bool receives_need_checks(bool tagged) const;
  const Limits& limits(Operation operation) const { return limits_[static_cast<std::size_t>(operation)]; }

  std::uint64_t caps() const { return caps_; }
  const protocol::Ordering& ordering() const { return ordering_; }
  std::size_t tx_size() const { return tx_size_; }
  std::size_t rx_size() const { return rx_size_; }

 private:
  void translate_flags();
  void find_fast_ends();
  void find_fast_accesses();
  std::size_t* value_of(int option);

  // A mask has all bits set if receives of its kind ignore the source. Otherwise it has no bit set.
  std::uint64_t source_mask_;
  std::uint64_t tagged_source_mask_;
  Limits limits_[4];  ///< indexed by Operation
  TxFlags tx_flags_;
  TxFlags inject_flags_;
  std::size_t fast_send_end_ = 0;
  std::size_t fast_inject_end_ = 0;
  std::size_t fast_write_max_ = 0;
  std::size_t fast_inject_write_max_ = 0;
  std::size_t fast_read_max_ = 0;
  bool report_receives_ = true;
  CompletionMode mode_;
  bool connects_;
  std::uint64_t caps_;
  protocol::Ordering ordering_;
  std::uint64_t tx_op_flags_;
  std::uint64_t rx_op_flags_;
  std::size_t tx_size_;
  std::size_t rx_size_;
  std::size_t min_multi_recv_ = 64;
};

}  // namespace cluster::api
