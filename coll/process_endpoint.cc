#include "process_endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_cluster.h>

#include <cstring>

namespace coll {
namespace {

constexpr std::uint32_t kApiVersion = FI_VERSION(1, 15);
constexpr std::size_t kNameMax = 64;
/// Selects only the provider `cluster`. Without the exclusions, libfabric would also try its layered
/// providers and log their failures as warnings.
constexpr const char* kProvider = "cluster;^ofi_rxm;^ofi_rxd;^ofi_mrail";

std::mutex guard;
bool tried = false;
ProcessEndpoint* endpoint = nullptr;
std::string failure;

}  // namespace

Team::~Team() {
  // fi_close() returns -FI_EBUSY while a peer still reads the buffer of an aborted operation. The read takes
  // only a moment.
  while (fi_close(&mc_->fid) == -FI_EBUSY) {
  }
}

ProcessEndpoint* ProcessEndpoint::get(std::string& reason) {
  const std::lock_guard lock(guard);
  if (!tried) {
    tried = true;
    auto* const opened = new ProcessEndpoint();
    if (opened->open(failure)) {
      endpoint = opened;
    } else {
      delete opened;
    }
  }
  reason = failure;
  return endpoint;
}

void ProcessEndpoint::close() {
  const std::lock_guard lock(guard);
  delete endpoint;
  endpoint = nullptr;
  tried = true;
  failure = "MPI_Finalize was called";
}

bool ProcessEndpoint::open(std::string& reason) {
  if (!libfabric_.load(reason)) return false;
  const FreeInfo free{&libfabric_};
  const std::unique_ptr<fi_info, FreeInfo> hints(libfabric_.dupinfo(nullptr), free);
  hints->caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE;
  hints->mode = ~0ull;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  // This endpoint uses manual progress. So a rank's messages may wait for up to 10 ms if the rank has
  // finished its part of an operation and computes. But with automatic progress, a separate thread would
  // handle each arrival, and take processor time from ranks that are about to handle the arrival themselves.
  hints->domain_attr->data_progress = hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->av_type = FI_AV_TABLE;
  hints->fabric_attr->prov_name = strdup(kProvider);
  fi_info* found = nullptr;
  int status = libfabric_.getinfo(kApiVersion, nullptr, nullptr, 0, hints.get(), &found);
  const std::unique_ptr<fi_info, FreeInfo> info(found, free);
  const auto opened = [&](int result, const char* call) {
    if (result != 0) reason = std::string(call) + ": " + libfabric_.strerror(-result);
    return result == 0;
  };
  if (!opened(status, "fi_getinfo for the provider cluster with FI_COLLECTIVE")) return false;
  const auto take = [&](auto& owner, auto* object, int result, const char* call) {
    owner.reset(result == 0 ? object : nullptr);
    return opened(result, call);
  };
  fid_fabric* fabric = nullptr;
  status = libfabric_.fabric(info->fabric_attr, &fabric, nullptr);
  if (!take(fabric_, fabric, status, "fi_fabric")) return false;
  fid_domain* domain = nullptr;
  status = fi_domain(fabric, info.get(), &domain, nullptr);
  if (!take(domain_, domain, status, "fi_domain")) return false;
  fi_av_attr av_attributes{};
  av_attributes.type = FI_AV_TABLE;
  fid_av* av = nullptr;
  status = fi_av_open(domain, &av_attributes, &av, nullptr);
  if (!take(av_, av, status, "fi_av_open")) return false;
  fi_cq_attr cq_attributes{};
  cq_attributes.format = FI_CQ_FORMAT_CONTEXT;
  cq_attributes.wait_obj = FI_WAIT_UNSPEC;
  fid_cq* cq = nullptr;
  status = fi_cq_open(domain, &cq_attributes, &cq, nullptr);
  if (!take(cq_, cq, status, "fi_cq_open")) return false;
  fi_eq_attr eq_attributes{};
  fid_eq* eq = nullptr;
  status = fi_eq_open(fabric, &eq_attributes, &eq, nullptr);
  if (!take(eq_, eq, status, "fi_eq_open")) return false;
  fid_ep* ep = nullptr;
  status = fi_endpoint(domain, info.get(), &ep, nullptr);
  if (!take(ep_, ep, status, "fi_endpoint")) return false;
  status = fi_ep_bind(ep, &av->fid, 0);
  if (status == 0) status = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV);
  if (status == 0) status = fi_ep_bind(ep, &eq->fid, 0);
  if (status == 0) status = fi_enable(ep);
  if (!opened(status, "fi_enable")) return false;
  std::size_t size = kNameMax;
  name_.resize(size);
  status = fi_getname(&ep->fid, name_.data(), &size);
  name_.resize(size);
  return opened(status, "fi_getname");
}

std::unique_ptr<Team> ProcessEndpoint::begin_join(const std::vector<Name>& names, std::uint64_t key,
                                                  Pending& joined) {
  const std::lock_guard lock(joining_);
  std::vector<fi_addr_t> members;
  for (const Name& name : names) {
    members.push_back(FI_ADDR_NOTAVAIL);
    if (fi_av_insert(av_.get(), name.data(), 1, &members.back(), 0, nullptr) != 1) return nullptr;
  }
  fi_av_set_attr attributes{};
  attributes.count = members.size();
  attributes.start_addr = attributes.end_addr = FI_ADDR_NOTAVAIL;
  attributes.comm_key = reinterpret_cast<std::uint8_t*>(&key);
  attributes.comm_key_size = sizeof key;
  fid_av_set* set = nullptr;
  if (fi_av_set(av_.get(), &attributes, &set, nullptr) != 0) return nullptr;
  Owned<fid_av_set> owned(set);
  for (const fi_addr_t member : members) {
    if (fi_av_set_insert(set, member) != 0) return nullptr;
  }
  fid_mc* mc = nullptr;
  if (fi_join_collective(ep_.get(), FI_ADDR_NOTAVAIL, set, 0, &mc, &joined) != 0) return nullptr;
  return std::make_unique<Team>(std::move(owned), mc, std::move(members));
}

bool ProcessEndpoint::read_event() {
  std::uint32_t event = 0;
  alignas(fi_eq_cm_entry) std::byte buffer[512];
  const ssize_t got = fi_eq_read(eq_.get(), &event, buffer, sizeof buffer, 0);
  if (got == -FI_EAVAIL) {
    fi_eq_err_entry error{};
    if (fi_eq_readerr(eq_.get(), &error, 0) > 0) static_cast<Pending*>(error.context)->end(error.err);
    return true;
  }
  if (got <= 0) return false;
  const auto length = static_cast<std::size_t>(got);
  fi_cluster_peer_lost lost;
  if (event == FI_JOIN_COMPLETE && length >= sizeof(fi_eq_entry)) {
    fi_eq_entry entry;
    std::memcpy(&entry, buffer, sizeof entry);
    static_cast<Pending*>(entry.context)->end(0);
  } else if (event == FI_SHUTDOWN && length >= sizeof(fi_eq_cm_entry) + sizeof lost) {
    std::memcpy(&lost, buffer + sizeof(fi_eq_cm_entry), sizeof lost);
    const std::lock_guard lock(losing_);
    if (losses_.size() < kLossesMax) losses_.push_back({lost.peer, lost.cause});
  }
  return true;
}

Loss ProcessEndpoint::loss_among(const Team& team) {
  while (read_event()) {
  }
  const std::lock_guard lock(losing_);
  const auto found = std::find_if(losses_.begin(), losses_.end(),
                                  [&](const Loss& loss) { return team.rank_of(loss.peer) < team.size(); });
  return found == losses_.end() ? Loss{} : *found;
}

void ProcessEndpoint::progress() {
  fi_cq_entry entry;
  take(fi_cq_read(cq_.get(), &entry, 1), entry);
}

void ProcessEndpoint::sleep() {
  fi_cq_entry entry;
  take(fi_cq_sread(cq_.get(), &entry, 1, nullptr, kSleepMs), entry);
}

void ProcessEndpoint::take(ssize_t got, const fi_cq_entry& entry) {
  if (got == 1) {
    static_cast<Pending*>(entry.op_context)->end(0);
  } else if (got == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    if (fi_cq_readerr(cq_.get(), &error, 0) == 1 && error.op_context != nullptr)
      static_cast<Pending*>(error.op_context)->end(error.err);
  }
}

}  // namespace coll
