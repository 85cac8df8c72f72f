// libfabric's objects with owners, and the few loops that every test needs: post until accepted,
// wait for an outcome. Only the public interface is used; nothing here knows the provider.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sides.h"

namespace conformance {

inline constexpr std::uint32_t kApiVersion = FI_VERSION(1, 15);

struct CloseFid {
  template <typename Object>
  void operator()(Object* object) const {
    EXPECT_EQ(fi_close(&object->fid), 0);
  }
};
template <typename Object>
using Owned = std::unique_ptr<Object, CloseFid>;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// What the setting asks for where a test does not care: CONFORMANCE_PROGRESS=auto, manual or neither.
fi_progress default_progress();

struct Options {
  fi_ep_type type = FI_EP_RDM;
  std::uint64_t caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
  fi_cq_format format = FI_CQ_FORMAT_TAGGED;
  fi_wait_obj wait = FI_WAIT_NONE;
  fid_wait* wait_set = nullptr;  ///< of FI_WAIT_SET
  fi_cq_wait_cond wait_cond = FI_CQ_COND_NONE;
  fi_av_type av_type = FI_AV_TABLE;
  fi_threading threading = FI_THREAD_SAFE;
  fi_progress progress = default_progress();
  std::uint64_t tx_op_flags = 0;
  std::uint64_t rx_op_flags = 0;
  std::uint64_t order = FI_ORDER_NONE;  ///< asked for beside FI_ORDER_SAS
  std::uint64_t bind_flags = 0;         ///< added when the queues are bound (FI_SELECTIVE_COMPLETION)
  std::uint64_t counted = 0;            ///< kinds of events (FI_SEND, FI_REMOTE_READ...) with a counter each
  int mr_mode = 0;                      ///< what the application can live with
  /// Capabilities that libfabric added in 2.0. Older versions cannot pass them to a provider, so there they
  /// are added to the answer.
  std::uint64_t newer_caps = 0;
  std::uint64_t av_flags = 0;
  std::string service = {};       ///< the endpoint's port; empty: any
  std::string domain_key = {};    ///< auth_key of the domain; empty: none
  std::string endpoint_key = {};  ///< the same of the endpoint
  bool events = false;            ///< with an event queue
  fid_ep* shared_rx = nullptr;    ///< a shared receive context that the endpoint binds
  fid_stx* shared_tx = nullptr;   ///< the same for transmits
};

/// Hints as an application would fill them.
Info make_hints(const Options& options);
/// fi_getinfo for the setting's node; null if there is none.
Info get_info(const Options& options);

/// Fabric, domain and address vector; several endpoints may live in one.
class Domain {
 public:
  explicit Domain(const Options& options = {});
  fi_info* info() const { return info_.get(); }
  fid_fabric* fabric() const { return fabric_.get(); }
  fid_domain* domain() const { return domain_.get(); }
  fid_av* av() const { return av_.get(); }
  fi_addr_t insert(const Blob& name);
  const Options& options() const { return options_; }

 private:
  Options options_;
  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_av> av_;
};

/// What a completion queue said: an entry, or an error entry. Fields the format lacks are zero.
struct Outcome {
  bool error = false;
  fi_cq_tagged_entry entry{};
  fi_cq_err_entry failure{};
  fi_addr_t source = FI_ADDR_NOTAVAIL;
};

class Endpoint {
 public:
  /// An endpoint in a domain of its own, or in `domain`.
  explicit Endpoint(const Options& options = {});
  explicit Endpoint(Domain& domain);
  Endpoint(Domain& domain, const Options& options);

  Domain& domain() { return *domain_; }
  fid_ep* ep() const { return ep_.get(); }
  fid_cq* tx() const { return tx_.get(); }
  fid_cq* rx() const { return rx_.get(); }
  /// Null without Options::events or FI_COLLECTIVE.
  fid_eq* eq() const { return eq_.get(); }
  /// The counter of one kind of event that Options::counted names.
  fid_cntr* counter(std::uint64_t kind) const { return counters_.at(kind).get(); }
  Blob name() const;
  fi_addr_t insert(const Blob& name) { return domain_->insert(name); }

  /// One round of progress without taking anything from the queues.
  void progress();
  /// Repeats `post` while it says -FI_EAGAIN, with progress in between; returns its last word.
  ssize_t post(const std::function<ssize_t()>& post);
  /// Posts and expects 0.
  void must(const std::function<ssize_t()>& post);
  /// The outcome of the operation with this context, from either queue, within `limit`.
  std::optional<Outcome> await(const void* context,
                               std::chrono::milliseconds limit = std::chrono::seconds(20));
  /// The outcome, which must exist and be a success.
  Outcome finish(const void* context);
  /// The outcome, which must exist and be a failure with this (positive) error number.
  Outcome fail(const void* context, int error);
  /// The next outcome of any operation, oldest first.
  std::optional<Outcome> next(std::chrono::milliseconds limit = std::chrono::seconds(20));
  /// True if nothing is reported for this long, progress included.
  bool silent(std::chrono::milliseconds length);

 private:
  void open(const Options& options);
  void collect(fid_cq* cq);

  std::unique_ptr<Domain> own_domain_;
  Domain* domain_;
  fi_cq_format format_ = FI_CQ_FORMAT_TAGGED;
  Owned<fid_cq> tx_;
  Owned<fid_cq> rx_;
  std::map<std::uint64_t, Owned<fid_cntr>> counters_;
  Owned<fid_eq> eq_;
  Owned<fid_ep> ep_;
  std::deque<Outcome> outcomes_;
};

/// Two or more sides, each with one endpoint, that know each other's names; peers[i] is side i.
struct Team {
  explicit Team(Side& side, const Options& options = {});
  /// A barrier of all sides that makes progress: no side ends while another still needs it.
  ~Team();
  fi_addr_t peer() const { return peers[static_cast<std::size_t>(1 - side.index())]; }
  void meet() {
    side.meet([this] { endpoint.progress(); });
  }

  Side& side;
  Endpoint endpoint;
  std::vector<Blob> names;
  std::vector<fi_addr_t> peers;
};

/// A pattern in which the value of a byte depends on its position and the seed.
std::vector<unsigned char> pattern(std::size_t size, std::uint64_t seed);
/// True if `data` is the beginning of pattern(seed); says where it is not.
testing::AssertionResult has_pattern(std::span<const unsigned char> data, std::uint64_t seed);

}  // namespace conformance
