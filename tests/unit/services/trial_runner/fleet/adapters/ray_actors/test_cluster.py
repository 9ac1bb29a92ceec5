from svc_trial_runner.fleet.adapters.ray_actors.cluster import ActorPlan


def test_settings_of_an_agent_are_in_no_representation_of_its_plan() -> None:
    plan = ActorPlan("nni-0123abcd-exp-a-1", {}, "digest", "holder", "~/.nni", {"": b"hidden"})

    assert plan.settings == {"": b"hidden"}
    assert "hidden" not in repr(plan)
