"""The weights that a process leaves behind are those that its run ended with, or none."""

from support.runs import NO_AUDITS, included, member, start_members, until_round

from troth_client.participant.ending import conclude
from troth_client.participant.settings import ParticipantSettings
from troth_coordinator.chain.operations import Owner
from troth_coordinator.rules.phase import Phase


async def test_who_left_before_the_end_exports_no_older_weights(run_factory, data, tmp_path):
    run = await run_factory.create(8, **NO_AUDITS)
    await start_members(run, ["ada", "bob", "cyd"])
    await until_round(run, 2)
    cyd = member(run, "cyd")
    await Owner(run.client, run.at, cyd.owner).leave_run()
    await until_round(run, 5)
    await run.stop(cyd)
    await run.start(cyd)
    await run.finish()
    view = await run.view()
    assert view.run.phase == Phase.FINISHED
    assert 2 not in included(run, "ada")[7]

    def weights(name):
        one = member(run, name)
        config, folder = run.settings.config, tmp_path / name
        settings = ParticipantSettings((), "", config, data[0], folder, b"", b"")
        return conclude(one.here, settings, view)

    assert weights("ada").weights == tmp_path / "ada" / "weights"
    stale = weights("cyd")
    assert stale.is_finished and stale.round < view.run.round
    assert stale.weights is None
