#include "modules/ucx_communicator.h"

namespace mixdown {
namespace {

// A tag, from its highest bit on: what the receiver calls the group (16 bits), the
// sender's position in it (16), whether the message is of a collective (1), the lower
// bits of the match (31). UCX itself does not look at who sent a message.
constexpr int64_t kMatches = int64_t{1} << 31;

ucp_tag_t tag_of(uint16_t group, int sender, int64_t match) {
  const uint64_t composed = match >= kComposedMatch ? 1 : 0;
  return uint64_t{group} << 48 | static_cast<uint64_t>(sender) << 32 | composed << 31 |
         static_cast<uint64_t>(match % kMatches);
}

class UcxCommunicator final : public Communicator {
 public:
  UcxCommunicator(UcxWorker& worker, std::vector<UcxPeer> peers, int rank, const Arithmetic& arithmetic)
      : Communicator(rank, static_cast<int>(peers.size()), arithmetic), worker_(worker), peers_(std::move(peers)) {}

  void batch(const Transfer* transfers, size_t n, DType dtype) override {
    // One for each thread that calls: grows to the largest batch and stays.
    thread_local std::vector<UcxWorker::Message> messages;
    messages.clear();
    for (size_t i = 0; i < n; ++i) {
      const Transfer& t = transfers[i];
      const UcxPeer& peer = peers_[static_cast<size_t>(t.peer)];
      const ucp_tag_t tag = t.send ? tag_of(peer.number, rank(), t.match)
                                   : tag_of(peers_[static_cast<size_t>(rank())].number, t.peer, t.match);
      messages.push_back({t.send, peer.endpoint, t.buffer, static_cast<size_t>(t.count * size_of(dtype)), tag});
    }
    worker_.exchange(messages);
  }

 private:
  UcxWorker& worker_;
  const std::vector<UcxPeer> peers_;
};

}  // namespace

std::unique_ptr<Communicator> make_ucx_communicator(UcxWorker& worker, std::vector<UcxPeer> peers, int rank,
                                                    const Arithmetic& arithmetic) {
  return std::make_unique<UcxCommunicator>(worker, std::move(peers), rank, arithmetic);
}

}  // namespace mixdown
