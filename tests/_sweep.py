import sys,itertools,random
from dataclasses import replace
from tests.lifecycle.trace.test_walks import *
from replaylife.lifecycle.trace.checker import TransitionChecker
n=0
for seed in range(int(sys.argv[1]),int(sys.argv[2])):
  for strat,ov,pol in itertools.product(GRIDS,(False,True),({"finish":"truncate"},{"finish":"fold","track":"fold-only"},{"replayssm":False})):
    page,cg=GRIDS[strat]
    c=CacheConfig(strategy=strat,slots=random.Random(seed).choice((6,9,14)),kv_tokens=120,page=page,chunk_grid=cg,ring_length=4,track_interval=6,overlap=ov,**pol)
    e=EngineFactory(EngineConfig(ModelConfig(vocab=random.Random(seed).choice((2,16))),c)).build()
    ch=TransitionChecker(e.capabilities)
    for t in Player(e,random.Random(seed)).play(400):
        n+=1
        v=ch.check(t)
        if v:
            print('VIOL',strat,ov,pol,seed,t.step,t.action)
            for x in v[:4]: print('   ',x.invariant,x.subject,'|',x.found,'|',x.expected,x.proof[1])
            for x in t.events: print('      ev',x)
            break
print(n,'steps')
